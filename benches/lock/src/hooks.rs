//! What an agent waits for before each of its tools: one process that answers its harness.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::race::{Lane, say, tails};
use jvs_kit::live::binary;
use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};

/// The same on a JuiceFS volume.
pub(crate) fn on_juicefs(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 1) else { return };
    on(volume.host(0), &format!("JuiceFS on {engine:?}"), 200);
}

/// Measures in a repository made in `dir`, which is `what`.
pub(crate) fn on(dir: &Path, what: &str, rounds: usize) {
    let home = Home::new();
    let root = dir.join("hooked");
    home.jvs(["init"]).arg(&root).run().ok();
    let place = root.join("main");
    home.jvs(["worktree", "create", "free"]).cwd(&place).run().ok();
    home.jvs(["lock", "acquire", "--no-keeper"]).cwd(&place).run().ok();
    let payloads = tempfile::tempdir().expect("a directory");
    let lane = |name: &str, tool: &str, input: String| {
        let file = payloads.path().join(name.replace(' ', "-"));
        let payload = format!(
            "{{\"session_id\":\"s\",\"cwd\":\"{}\",\"hook_event_name\":\"PreToolUse\",\
             \"tool_name\":\"{tool}\",\"tool_input\":{{{input}}}}}",
            place.display()
        );
        fs_err::write(&file, payload).expect("written");
        let mut command = home.jvs(["hook", "claude", "PreToolUse"]).cwd(&place).command();
        Lane::new(name, move || {
            let input = fs_err::File::open(&file).expect("the payload").into_file();
            answered(command.stdin(Stdio::from(input)));
        })
    };
    let file = |path: &Path| format!("\"file_path\":\"{}\",\"content\":\"x\"", path.display());
    let free = root.join("worktrees/free/file");
    let mut hello = Command::new(binary::jvs().with_file_name("bench-hello"));
    hello.env_clear().stdin(Stdio::null());
    let load = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    say(&format!("\nload: {}", load.trim_end()));
    tails(
        &format!("a hook before a tool, {what}"),
        rounds,
        vec![
            Lane::new("hello, world", move || answered(&mut hello)),
            lane("a tool that reads", "Read", file(&place.join("file"))),
            lane("a command that reads", "Bash", "\"command\":\"git status\"".to_owned()),
            lane("a write, held", "Write", file(&place.join("file"))),
            lane("a command that writes, held", "Bash", "\"command\":\"make\"".to_owned()),
            lane("a write, denied", "Write", file(&free)),
        ],
    );
}

fn answered(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("started").success(), "{command:?} failed");
}
