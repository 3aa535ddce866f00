//! Coding agents that ask the hook before each tool: what they may do, at once, on a mount
//! that hangs, and with payloads that nobody should send.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::Outcome;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::World;

/// Each of four agents uses so many tools; `JVS_LONG=1` makes it a thousand, and `JVS_LONG=N`
/// so many times as many.
fn calls() -> usize {
    const FEW: usize = 50;
    match std::env::var("JVS_LONG") {
        Ok(times) => {
            times.parse::<usize>().ok().filter(|times| *times > 1).map_or(1_000, |n| FEW * n)
        }
        Err(_) => FEW,
    }
}

const HARNESSES: [&str; 4] = ["claude", "codex", "cursor", "gemini"];

/// One agent, scripted.
struct Agent<'w> {
    world: &'w World,
    host: usize,
    session: String,
    options: &'static str,
    /// Where its payloads are put.
    payload: PathBuf,
}

impl<'w> Agent<'w> {
    fn new(world: &'w World, host: usize, session: &str, options: &'static str) -> Self {
        let payload = world.outside(&format!("payload-{session}.json"));
        Agent { world, host, session: session.to_owned(), options, payload }
    }

    fn dir(&self) -> PathBuf {
        self.world.root_on(self.host).join("main")
    }

    /// A command that it types.
    fn types(&self, words: &str) -> Jvs {
        let jvs = self.world.jvs_on(self.host, words).env_remove("JVS_SESSION_ID");
        jvs.env("CLAUDE_CODE_SESSION_ID", &self.session)
    }

    fn asks(&self, event: &str, fields: Value) -> Outcome {
        let mut payload = json!({
            "session_id": self.session,
            "cwd": self.dir(),
            "hook_event_name": event,
        });
        for (name, value) in fields.as_object().expect("fields") {
            payload[name] = value.clone();
        }
        fs_err::write(&self.payload, payload.to_string()).expect("written");
        let jvs = self.types(&format!("hook claude {event}{}", self.options));
        let jvs = fed(jvs, &self.payload);
        // On a machine that is busy enough an answer is late, and asked for again.
        for _ in 0..50 {
            let said = jvs.run().ok();
            if !said.stdout().contains("did not answer in time") {
                return said;
            }
        }
        panic!("{} is never answered about {event}", self.session)
    }

    /// May it use the tool? If not, what it is told to run.
    fn may(&self, tool: &str, input: Value) -> Result<(), String> {
        let answer = self.asks("PreToolUse", json!({ "tool_name": tool, "tool_input": input }));
        if answer.stdout().is_empty() {
            return Ok(());
        }
        let said = answer.json()["hookSpecificOutput"].clone();
        assert_eq!(said["permissionDecision"], "deny", "{answer}");
        let why = said["permissionDecisionReason"].as_str().expect("a reason");
        let (_, command) = why.split_once("try again: jvs ").unwrap_or_else(|| panic!("{why}"));
        Err(command.to_owned())
    }

    /// Uses the tool `n`th; counts what it writes.
    fn uses(&self, n: usize, writes: &AtomicUsize) {
        let file = self.dir().join(format!("{}-{n}", self.session));
        let (tool, input) = match n % 5 {
            0 => ("Read", json!({ "file_path": file })),
            1 => ("Bash", json!({ "command": "ls -la && git status" })),
            2 => ("Bash", json!({ "command": "make" })),
            3 => ("Edit", json!({ "file_path": file, "old_string": "a", "new_string": "b" })),
            _ => ("Write", json!({ "file_path": file, "content": "x" })),
        };
        while let Err(command) = self.may(tool, input.clone()) {
            assert!(n % 5 > 1, "{tool} only reads");
            // As it was told to. Others may be quicker, and then it is told again.
            let _ = self.types(&command.replace("--wait=90s", "--wait=30s")).run();
        }
        if n % 5 > 1 {
            self.writes_alone(&file);
            writes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Nobody else writes, and it holds.
    fn writes_alone(&self, file: &Path) {
        let mark = self.dir().join("being-written");
        let made = fs_err::OpenOptions::new().write(true).create_new(true).open(&mark);
        made.unwrap_or_else(|error| panic!("{} writes beside another: {error}", self.session));
        fs_err::write(file, &self.session).expect("written");
        let status = self.types("lock status --json").run().json();
        fs_err::remove_file(&mark).expect("removed");
        assert_eq!(status["data"]["mine"], true, "{} does not hold: {status}", self.session);
    }
}

/// With its standard input from a file.
fn fed(jvs: Jvs, input: &Path) -> Jvs {
    let script = format!("exec \"$@\" < '{}'", input.display());
    jvs.under(["sh", "-c", &script, "sh"])
}

fn four_agents(world: &World) {
    let writes = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let options = if n < 2 { "" } else { " --auto --checkpoint" };
            let agent = Agent::new(world, n % 2, &format!("agent-{n}"), options);
            let writes = &writes;
            scope.spawn(move || {
                let greeting = agent.asks("SessionStart", json!({ "source": "startup" }));
                assert!(greeting.stdout().contains("one session at a time"), "{greeting}");
                for call in 0..calls() {
                    agent.uses(call, writes);
                    if call % 10 == 9 {
                        let end = agent.asks("Stop", json!({ "stop_hook_active": false }));
                        assert_eq!(end.stdout(), "", "{end}");
                        agent.types("lock release").run().ok();
                    }
                }
                let end = agent.asks("SessionEnd", json!({ "reason": "exit" }));
                assert_eq!(end.stdout(), "", "{end}");
            });
        }
    });
    assert_eq!(writes.load(Ordering::Relaxed), calls() / 5 * 3 * 4);
    assert_eq!(world.status()["state"], "free");
    assert_eq!(world.tickets(), 0);
    world.audit_holds();
}

#[test]
fn four_agents_at_once_write_only_what_they_hold() {
    four_agents(&World::new());
}

#[test]
fn four_agents_on_two_mounts_write_only_what_they_hold() {
    if let Some(world) = World::on_two_mounts() {
        four_agents(&world);
    }
}

#[test]
fn a_hook_answers_although_the_mount_hangs() {
    let Some(world) = World::on_two_mounts() else { return };
    let agent = Agent::new(&world, 0, "agent", "");
    let payload = |event: &str| {
        let file = agent.dir().join("file");
        let text = json!({
            "session_id": "agent", "cwd": agent.dir(), "hook_event_name": event,
            "tool_name": "Write", "tool_input": { "file_path": file },
        });
        fs_err::write(&agent.payload, text.to_string()).expect("written");
    };
    // Not from within: nobody could even start there.
    let hook = |words: &str| {
        let jvs = agent.types(words).cwd(world.outside(""));
        fed(jvs, &agent.payload).run().ok()
    };
    world.signal_mount(0, Signal::STOP);
    payload("PreToolUse");
    let denied = hook("hook claude");
    let allowed = hook("hook claude --on-error allow");
    payload("SessionEnd");
    let ended = hook("hook claude --auto");
    world.signal_mount(0, Signal::CONT);
    assert_eq!(denied.json()["hookSpecificOutput"]["permissionDecision"], "deny", "{denied}");
    for (said, has) in [(&denied, "did not answer in time"), (&allowed, "let it pass")] {
        assert!(said.stdout().contains(has), "{said}");
    }
    assert!(allowed.json().get("hookSpecificOutput").is_none(), "{allowed}");
    // It holds nothing, which is known without a look at the mount.
    assert_eq!(ended.stdout(), "", "{ended}");
    world.eventually_free();
}

#[test]
fn a_payload_that_never_ends_is_answered() {
    let world = World::new();
    let jvs = world.jvs("ann", "hook claude PreToolUse");
    let outcome = jvs.under(["sh", "-c", "tail -f /dev/null | \"$@\"; pkill -P $$", "sh"]).start();
    let said = outcome.wait(crate::world::PATIENCE);
    assert!(said.stdout().contains("did not end in time"), "{said}");
}

#[test]
fn a_lock_taken_by_the_first_write_ends_with_the_harness() {
    let world = World::new();
    let agent = Agent::new(&world, 0, "agent", " --auto");
    let text = json!({
        "session_id": "agent", "cwd": agent.dir(), "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": { "command": "make" },
    });
    fs_err::write(&agent.payload, text.to_string()).expect("written");
    let up = world.outside("up");
    // The harness is whoever starts the shell that starts the hook.
    let script = format!(
        "sh -c '\"$@\" < {}; true' sh \"$@\"; echo > {}; exec sleep 60",
        agent.payload.display(),
        up.display()
    );
    let jvs = agent.types("hook claude --auto").env_remove("JVS_KEEP_WHILE");
    let harness = jvs.under(["timeout", "60", "bash", "-c", &script, "sh"]).start();
    jvs_kit::live::process::eventually("it was asked", crate::world::PATIENCE, || up.exists());
    assert_eq!(world.status()["state"], "held");
    harness.signal(Signal::KILL);
    world.eventually_free();
}

/// Somebody else had the lock and gave it back: the agent is told before it writes again.
#[test]
fn a_lock_that_was_lost_is_told_of_before_it_is_taken_again() {
    for by_itself in [true, false] {
        let world = World::new();
        world.jvs("ann", "config set reclaim.same_user true").run().ok();
        let agent = Agent::new(&world, 0, "agent", " --auto --checkpoint");
        let write = || agent.may("Write", json!({ "file_path": agent.dir().join("file") }));
        match by_itself {
            true => assert_eq!(write(), Ok(())),
            false => drop(agent.types("lock acquire").run().ok()),
        }
        world.jvs("bob", "lock reclaim --reason mine").cwd(agent.dir()).run().ok();
        fs_err::write(agent.dir().join("theirs"), "x").expect("written");
        world.jvs("bob", "snapshot theirs").cwd(agent.dir()).run().ok();
        world.jvs("bob", "lock release").cwd(agent.dir()).run().ok();
        let end = agent.asks("Stop", json!({ "stop_hook_active": false }));
        assert!(end.stdout().contains("its lock was lost"), "{end}");
        // Until it says that it knows.
        for _ in 0..2 {
            let file = json!({ "file_path": agent.dir().join("file") });
            let answer =
                agent.asks("PreToolUse", json!({ "tool_name": "Write", "tool_input": file }));
            let why = answer.json()["hookSpecificOutput"]["permissionDecisionReason"].clone();
            let why = why.as_str().unwrap_or_else(|| panic!("denied: {answer}")).to_owned();
            assert!(why.contains("jvs lock acquire -w main"), "{why}");
            assert_eq!(world.status()["state"], "free", "{why}");
        }
        agent.types("lock acquire -w main").run().ok();
        assert_eq!(write(), Ok(()));
        let end = agent.asks("Stop", json!({ "stop_hook_active": false }));
        assert_eq!(end.stdout(), "", "{end}");
    }
}

#[test]
fn what_a_session_leaves_running_releases_its_lock_in_the_end() {
    let world = World::new();
    let agent = Agent::new(&world, 0, "agent", "");
    agent.types("lock acquire").run().ok();
    let (up, over) = (world.outside("up"), world.outside("over"));
    let script =
        format!("echo > {}; until test -e {}; do sleep 0.05; done", up.display(), over.display());
    let run = agent.types("run sh -c").arg(&script).start();
    jvs_kit::live::process::eventually("it runs", crate::world::PATIENCE, || up.exists());
    let end = agent.asks("SessionEnd", json!({ "reason": "exit" }));
    assert!(end.stdout().contains("is released once its commands have ended"), "{end}");
    assert_eq!(world.status()["state"], "held");
    fs_err::write(&over, "").expect("written");
    run.wait(crate::world::PATIENCE).ok();
    world.eventually_free();
}

/// Payloads that are torn, hostile, or of a world to come: with what a tool event must be
/// answered.
#[test]
fn whatever_a_hook_is_sent_it_answers_and_leaves_no_lock() {
    let world = World::new();
    let dir = world.root().join("main");
    let long = "x".repeat(100_000);
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let file = dir.join("file");
    let tool = |session: Value, input: Value| {
        json!({
            "session_id": session, "conversation_id": session, "cwd": dir, "tool_name": "Write",
            "tool_input": input,
        })
        .to_string()
    };
    let good = json!({ "file_path": file });
    let bad: Vec<(&str, String)> = vec![
        ("nothing", String::new()),
        ("no JSON", "rm -rf /".to_owned()),
        ("half", "{\"session_id\": \"a\"".to_owned()),
        ("a list", "[{}]".to_owned()),
        ("too deep", format!("{{\"session_id\":\"a\",\"x\":{deep}}}")),
        ("twice", "{\"session_id\":\"a\",\"session_id\":\"b\"}".to_owned()),
        ("a number for a session", tool(json!(7), good.clone())),
        ("no session", tool(Value::Null, good.clone())),
        ("a long session", tool(json!(long), good.clone())),
        ("a zero byte in the session", tool(json!("a\0b"), good.clone())),
        ("no input", tool(json!("a"), Value::Null)),
        ("no file", tool(json!("a"), json!({}))),
        ("a file that is none", tool(json!("a"), json!({ "file_path": [7] }))),
        (
            "a zero byte in the file",
            tool(json!("a"), json!({ "file_path": format!("{}\0x", file.display()) })),
        ),
        ("another event", "{\"session_id\":\"a\",\"hook_event_name\":\"Stop\"}".to_owned()),
    ];
    let input = world.outside("payload");
    for harness in HARNESSES {
        let event = match harness {
            "cursor" => "preToolUse",
            "gemini" => "BeforeTool",
            _ => "PreToolUse",
        };
        for (what, payload) in &bad {
            fs_err::write(&input, payload).expect("written");
            let jvs = world.jvs_on(0, &format!("hook {harness} {event} --auto"));
            let said = fed(jvs.env_remove("JVS_SESSION_ID"), &input).run().ok();
            let answer = said.json();
            let denies = [
                &answer["hookSpecificOutput"]["permissionDecision"],
                &answer["permission"],
                &answer["decision"],
            ];
            assert!(denies.contains(&&json!("deny")), "{harness}, {what}: {said}");
            assert_eq!(said.stderr(), "", "{harness}, {what}");
            assert_eq!(world.status()["state"], "free", "{harness}, {what}");
        }
        // What is odd, and can be answered all the same.
        let odd = json!("odd \u{202e}\u{1b}[2J session/../..");
        fs_err::write(&input, tool(odd, good.clone())).expect("written");
        let said = fed(world.jvs_on(0, &format!("hook {harness} {event}")), &input).run().ok();
        assert!(said.stdout().is_ascii() && said.stdout().contains("deny"), "{said}");
    }
    assert_eq!(dir.read_dir().expect("listed").count(), 0, "nothing was made");
}

#[test]
fn a_worktree_that_is_named_from_elsewhere_is_guarded_too() {
    let world = World::new();
    world.ok("ann", "worktree create other");
    let agent = Agent::new(&world, 0, "agent", "");
    agent.types("lock acquire").run().ok();
    let bash = |command: &str| agent.may("Bash", json!({ "command": command }));
    assert_eq!(bash("make"), Ok(()));
    for command in ["rm -rf ../worktrees/other/x", "cd ../worktrees/other && make"] {
        let told = bash(command).expect_err(command);
        assert!(told.ends_with("lock acquire -w other"), "{command}: {told}");
    }
    for command in [
        "cd ../worktrees && touch other/x",
        "mv ../worktrees w2",
        "cp a ../worktrees/*/x",
        "touch ../worktrees/$X/y",
        "cd \"$(jvs worktree path other)\" && make",
        "touch \"$(dirname \"$PWD\")/worktrees/other/x\"",
        "jvs run touch ../worktrees/other/x",
    ] {
        assert!(bash(command).expect_err(command).ends_with("acquire -w other"), "{command}");
    }
    for command in [
        "cp ../x . && make",
        "cd sub && make",
        "echo */*.rs > list",
        "sed -i 's/a b/ /' f && rm x",
        "cd .. && ls > /dev/null",
    ] {
        assert_eq!(bash(command), Ok(()), "{command}");
    }
    let outside = |command: &str| {
        let input = json!({ "command": command });
        let payload = json!({
            "session_id": "nobody", "cwd": world.outside(""), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": input,
        });
        fs_err::write(&agent.payload, payload.to_string()).expect("written");
        let jvs = agent.types("hook claude").cwd(world.outside(""));
        fed(jvs, &agent.payload).run().ok().stdout().to_owned()
    };
    assert_eq!(outside("make"), "");
    let root = world.root().display().to_string();
    let denied = outside(&format!("rm -r {root}/main/x"));
    assert!(denied.contains("deny") && denied.contains(&format!("--repo {root}")), "{denied}");
    // By the names that a shell has for the home directory, and among many other words.
    let link = world.home.home_dir().join("project");
    fs_err::os::unix::fs::symlink(world.root().join("main"), &link).expect("a link");
    let text: String = (0..500).map(|n| format!("word{n} ")).collect();
    // It is the way of each word that counts, however it is written.
    let name = world.root().file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    for command in [
        format!("cd {name}; touch main/x"),
        format!("cd {name} && cd main && touch x"),
        format!("touch \"{name}\"/main/x"),
        format!("touch {name}/m\\ain/x"),
        format!("touch \"$PWD/{name}/main/x\""),
        format!("touch {name}/{{main,nope}}/x"),
        format!("cp x {name}/*/"),
        format!("tar xf a -C{root}/main"),
        format!("tar xf a -C {name}"),
        format!("rm -rf {name}"),
        format!("rm -rf {name}/worktrees"),
        format!("jvs run --repo {name} -w other touch {name}/main/x"),
        "touch ~/project/x".to_owned(),
        "touch $HOME/project/x".to_owned(),
        "touch \"${HOME}/project/x\"".to_owned(),
        format!("cat > {root}/main/x <<EOF\n{text}\nEOF"),
    ] {
        assert!(outside(&command).contains("deny"), "{command:.60}");
    }
}

#[test]
fn nobody_writes_to_the_files_of_jvs_itself() {
    let world = World::new();
    let agent = Agent::new(&world, 0, "agent", "");
    agent.types("lock acquire").run().ok();
    let asks = |tool: &str, input: Value| {
        agent.asks("PreToolUse", json!({ "tool_name": tool, "tool_input": input }))
    };
    for command in [
        "touch ../CONTROL/x",
        "rm -rf ../CONTROL",
        "rm -rf ..",
        "rm -rf ../..",
        "rm -rf ../.j*",
        "rm -rf ../{CONTROL,x}",
        "jvs lock acquire && rm -rf ../CONTROL",
        "sh -c 'cd ..; rm -rf CONTROL'",
    ] {
        let command = command.replace("CONTROL", jvs_repo::layout::CONTROL_DIR);
        let said = asks("Bash", json!({ "command": command }));
        assert!(said.stdout().contains("files are those of jvs itself"), "{command}: {said}");
    }
    let said = asks("Bash", json!({ "command": "jvs lock release && make" }));
    assert!(said.stdout().contains("in the same command is not locked"), "{said}");
}

#[test]
fn a_file_is_guarded_by_whatever_name_it_has() {
    let world = World::new();
    let agent = Agent::new(&world, 0, "agent", "");
    let dangling = world.outside("dangling");
    fs_err::os::unix::fs::symlink(world.root().join("main/new"), &dangling).expect("a link");
    let home = world.home.home_dir();
    fs_err::os::unix::fs::symlink(world.root().join("main"), home.join("link")).expect("a link");
    let name = world.root().file_name().expect("a name").to_owned();
    let nope = world.outside("nope/..").join(name).join("main/f");
    for path in [dangling, nope, PathBuf::from("~/link/f")] {
        let told = agent.may("Write", json!({ "file_path": path }));
        assert!(told.is_err(), "{}", path.display());
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+x\n", path.display());
        assert!(agent.may("apply_patch", json!({ "command": patch })).is_err());
    }
    let main = world.root().join("main/x");
    let server = json!({ "command": format!("rm -rf {}", main.display()) });
    assert!(agent.may("mcp__shell__run", server).is_err());
}

#[test]
fn what_is_installed_for_a_user_is_where_the_agent_reads_it() {
    let world = World::new();
    let own = world.outside("own");
    fs_err::create_dir(&own).expect("a directory");
    fs_err::write(own.join("settings.json"), "{\n  \"model\": \"x\"\n}\n").expect("written");
    let before = fs_err::read(own.join("settings.json")).expect("read");
    let claude = |words: &str| {
        world.jvs("ann", &format!("{words} claude --user")).env("CLAUDE_CONFIG_DIR", &own)
    };
    for _ in 0..2 {
        let said = claude("agent install").run().ok();
        assert!(!said.stderr().contains("CLAUDE_CONFIG_DIR"), "{said}");
    }
    let text = fs_err::read_to_string(own.join("settings.json")).expect("read");
    assert!(text.contains("hook claude") && text.contains("\"model\": \"x\""), "{text}");
    assert!(own.join("skills/jvs/SKILL.md").is_file());
    assert!(!world.home.home_dir().join(".claude").exists());
    let status = claude("agent status").run().ok();
    assert!(status.stdout().contains("claude: installed"), "{status}");
    claude("agent uninstall").run().ok();
    assert_eq!(fs_err::read(own.join("settings.json")).expect("read"), before);
    assert_eq!(own.read_dir().expect("listed").count(), 1);
}

/// Only the superuser can give files away, and can write to those of others.
#[test]
fn the_settings_of_somebody_else_are_refused_and_stay_theirs() {
    let world = World::new();
    let dir = world.root().join("main/.claude");
    fs_err::create_dir(&dir).expect("a directory");
    let settings = dir.join("settings.json");
    fs_err::write(&settings, "{\"a\": 1}\n").expect("written");
    if fs_err::os::unix::fs::chown(&settings, Some(12_345), Some(12_345)).is_err() {
        assert!(!rustix::process::geteuid().is_root());
        return;
    }
    let owner =
        || std::os::unix::fs::MetadataExt::uid(&fs_err::metadata(&settings).expect("there"));
    let refused = world.jvs("ann", "agent install claude --json").run();
    assert_eq!(refused.json()["error"]["code"], "E_PERMISSION", "{refused}");
    assert_eq!(fs_err::read_to_string(&settings).expect("read"), "{\"a\": 1}\n");
    assert_eq!((owner(), dir.read_dir().expect("listed").count()), (12_345, 1));
    assert!(!world.root().join("main/.jvs-agent.json").exists());
    fs_err::os::unix::fs::chown(&settings, Some(0), Some(0)).expect("taken");
    world.ok("ann", "agent install claude");
    world.ok("ann", "agent install claude --auto");
    let text = fs_err::read_to_string(&settings).expect("read");
    fs_err::write(&settings, text + "\n").expect("changed");
    fs_err::os::unix::fs::chown(&settings, Some(12_345), Some(12_345)).expect("given");
    let refused = world.jvs("ann", "agent uninstall claude --json").run();
    assert_eq!(refused.json()["error"]["code"], "E_PERMISSION", "{refused}");
    assert_eq!(owner(), 12_345);
}
