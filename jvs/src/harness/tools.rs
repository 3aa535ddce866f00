//! What a tool does to files, as far as its name and its input tell.

use std::path::{Path, PathBuf};

use jvs_repo::inert::on_one_line;
use serde_json::Value;

use super::patch;

/// What a tool is about to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToolUse {
    /// It is known to change no file of a worktree.
    Reads,
    /// It writes these files, and no other.
    Files(Vec<PathBuf>),
    /// A command for a shell, and where.
    Shell(String, PathBuf),
    /// Nobody knows what it does; its input names these paths.
    Unknown(Vec<PathBuf>),
    /// The same, and its input has a command for a shell, and where.
    UnknownShell(String, PathBuf, Vec<PathBuf>),
}

/// Tools that only read, or only talk. Those that are not listed may write.
const READING: &[&str] = &[
    // Claude Code
    "AskUserQuestion",
    "Agent",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "ListMcpResourcesTool",
    "NotebookRead",
    "Read",
    "ReadMcpResourceTool",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    // Codex CLI
    "update_plan",
    "view_image",
    "web_search",
    // Cursor
    "ReadLints",
    "SemanticSearch",
    // Gemini CLI
    "activate_skill",
    "ask_user",
    "glob",
    "google_web_search",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "search_file_content",
    "web_fetch",
    "write_todos",
];

/// Tools that run a command.
const SHELLS: &[&str] = &[
    "Bash",
    "Monitor",
    "PowerShell",
    "Shell",
    "exec_command",
    "local_shell",
    "run_shell_command",
    "shell",
];

/// Parts of the names of tools that run what they are given as a command, even one word.
const SHELL_LIKE: &[&str] = &["bash", "cmd", "command", "exec", "run", "shell", "terminal"];

/// Tools that write the file that they name.
const WRITING: &[&str] = &[
    "Delete",
    "Edit",
    "EditNotebook",
    "MultiEdit",
    "NotebookEdit",
    "StrReplace",
    "Write",
    "replace",
    "write_file",
];

/// Most paths that are looked for in an input of unknown shape, and how deep.
const PATHS_MAX: usize = 64;
const DEPTH_MAX: usize = 6;
const PATH_LENGTH_MAX: usize = 4096;

/// What `tool` is about to do with `input`, in `cwd`; or why that cannot be told.
pub(super) fn read(tool: &str, input: &Value, cwd: &Path) -> Result<ToolUse, String> {
    if READING.contains(&tool) {
        return Ok(ToolUse::Reads);
    }
    if SHELLS.contains(&tool) {
        return Ok(ToolUse::Shell(command(input)?, directory(input, cwd)));
    }
    if tool == "apply_patch" {
        let text = ["command", "input", "patch"].iter().find_map(|name| input.get(name)?.as_str());
        let text = text.ok_or("the input of apply_patch has no patch")?;
        let files = patch::files(text);
        if files.is_empty() {
            return Err("the patch names no file".to_owned());
        }
        return Ok(ToolUse::Files(files.into_iter().map(|file| cwd.join(file)).collect()));
    }
    if WRITING.contains(&tool) {
        let mut files = Vec::new();
        collect(input, "", &is_named, cwd, 0, &mut files);
        if files.is_empty() {
            return Err(format!("the input of {} names no file", short(tool)));
        }
        return Ok(ToolUse::Files(files));
    }
    let mut paths = Vec::new();
    collect(
        input,
        "",
        &|name, text| text.starts_with('/') || is_named(name, text),
        cwd,
        0,
        &mut paths,
    );
    let name = tool.to_ascii_lowercase();
    let shell_like = SHELL_LIKE.iter().any(|part| name.contains(part));
    // One word may be the name of what the tool is to do.
    match command(input).ok().filter(|it| shell_like || it.trim().contains(char::is_whitespace)) {
        Some(command) => Ok(ToolUse::UnknownShell(command, directory(input, cwd), paths)),
        None => Ok(ToolUse::Unknown(paths)),
    }
}

/// Where a command runs.
fn directory(input: &Value, cwd: &Path) -> PathBuf {
    const NAMES: &[&str] =
        &["workdir", "working_directory", "working_dir", "directory", "dir_path", "cwd"];
    cwd.join(NAMES.iter().find_map(|name| input.get(name)?.as_str()).unwrap_or(""))
}

/// Is a text of this name a path, by its name?
fn is_named(name: &str, _: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(&["path", "file", "dir", "notebook"]) && !has(&["content", "text"])
}

/// The command of a shell: text, or the words of a program.
fn command(input: &Value) -> Result<String, String> {
    match ["command", "cmd", "script"].iter().find_map(|name| input.get(name)) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(words)) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words.as_deref() {
                Some([shell, flag, script])
                    if shell.ends_with("sh") && ["-c", "-lc"].contains(flag) =>
                {
                    Ok((*script).to_owned())
                }
                Some(words) => Ok(words.join(" ")),
                None => Err("the command has words that are no text".to_owned()),
            }
        }
        _ => Err("the input of the shell has no command".to_owned()),
    }
}

/// The paths in an input of unknown shape: what `is_path` by its name and text.
fn collect(
    value: &Value,
    name: &str,
    is_path: &impl Fn(&str, &str) -> bool,
    cwd: &Path,
    depth: usize,
    paths: &mut Vec<PathBuf>,
) {
    if depth > DEPTH_MAX || paths.len() >= PATHS_MAX {
        return;
    }
    match value {
        Value::String(text) => {
            let text = text.strip_prefix("file://").unwrap_or(text);
            let fits = (1..=PATH_LENGTH_MAX).contains(&text.len()) && !text.contains(['\n', '\0']);
            if fits && is_path(name, text) {
                paths.push(cwd.join(text));
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| collect(item, name, is_path, cwd, depth + 1, paths));
        }
        Value::Object(fields) => {
            let each = |(name, it): (&String, &Value)| {
                collect(it, name, is_path, cwd, depth + 1, paths);
            };
            fields.iter().for_each(each);
        }
        _ => {}
    }
}

/// A name that others chose, for a sentence.
pub(super) fn short(name: &str) -> String {
    on_one_line(&name.chars().take(64).collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn used(tool: &str, input: &Value) -> Result<ToolUse, String> {
        read(tool, input, Path::new("/r/main"))
    }

    fn files(paths: &[&str]) -> ToolUse {
        ToolUse::Files(paths.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn a_tool_that_writes_is_known_by_the_file_that_it_names() {
        for (tool, input, path) in [
            ("Write", json!({"file_path": "/r/main/a", "content": "x"}), "/r/main/a"),
            ("Edit", json!({"file_path": "b", "old_string": "/x"}), "/r/main/b"),
            ("NotebookEdit", json!({"notebook_path": "/r/n.ipynb"}), "/r/n.ipynb"),
            ("replace", json!({"file_path": "/r/main/c"}), "/r/main/c"),
            ("apply_patch", json!({"command": "*** Add File: d\n+x"}), "/r/main/d"),
            ("Write", json!({"filePath": "/r/main/a", "content": "/x"}), "/r/main/a"),
            ("Write", json!({"file_path": ["b"], "file_text": "x"}), "/r/main/b"),
            ("MultiEdit", json!({"edits": [{"file_path": "/r/main/c"}]}), "/r/main/c"),
            ("write_file", json!({"absolute_path": "/r/main/d"}), "/r/main/d"),
        ] {
            assert_eq!(used(tool, &input), Ok(files(&[path])), "{tool}");
        }
        for (tool, input) in [
            ("Write", json!({})),
            ("Write", json!({"file_path": ""})),
            ("Edit", json!({"file_path": 7})),
            ("apply_patch", json!({"command": "nothing"})),
            ("Bash", json!({"command": null})),
            ("Bash", json!([])),
        ] {
            assert!(used(tool, &input).is_err(), "{tool} {input}");
        }
    }

    #[test]
    fn a_tool_that_nobody_knows_is_judged_by_the_paths_that_it_names() {
        let input = json!({"from": "/r/main/a", "options": {"target_path": "b"}, "note": "c"});
        let paths = vec![PathBuf::from("/r/main/a"), PathBuf::from("/r/main/b")];
        assert_eq!(used("mcp__fs__move", &input), Ok(ToolUse::Unknown(paths)));
        assert_eq!(used("Read", &input), Ok(ToolUse::Reads));
        let mut deep = json!("/r/main/x");
        (0..50).for_each(|_| deep = json!([deep]));
        assert_eq!(used("new", &deep), Ok(ToolUse::Unknown(Vec::new())));
    }

    #[test]
    fn a_command_is_text_or_words_and_says_where_it_runs() {
        let dir = || PathBuf::from("/r/main");
        for (input, command, dir) in [
            (json!({"command": "make"}), "make", dir()),
            (json!({"command": ["bash", "-lc", "make -j"]}), "make -j", dir()),
            (json!({"command": ["make", "-j"], "workdir": "sub"}), "make -j", dir().join("sub")),
            (json!({"command": "x", "dir_path": "/tmp"}), "x", PathBuf::from("/tmp")),
        ] {
            for tool in ["Bash", "Monitor", "PowerShell"] {
                let meant = ToolUse::Shell(command.to_owned(), dir.clone());
                assert_eq!(used(tool, &input), Ok(meant), "{tool}");
            }
        }
    }

    #[test]
    fn a_tool_that_nobody_knows_may_be_a_shell() {
        for (tool, command, is_shell) in [
            ("mcp__shell__run", "make", true),
            ("mcp__x__y", "touch x", true),
            ("mcp__editor__edit", "view", false),
        ] {
            let input = json!({"command": command, "path": "a", "cwd": "/r/w"});
            let paths = vec![PathBuf::from("/r/main/a"), PathBuf::from("/r/w")];
            let unknown = match is_shell {
                true => ToolUse::UnknownShell(command.to_owned(), PathBuf::from("/r/w"), paths),
                false => ToolUse::Unknown(vec![paths[0].clone(), paths[1].clone()]),
            };
            let used = used(tool, &input).map(|it| match it {
                ToolUse::UnknownShell(command, dir, mut paths) => {
                    paths.sort();
                    ToolUse::UnknownShell(command, dir, paths)
                }
                ToolUse::Unknown(mut paths) => {
                    paths.sort();
                    ToolUse::Unknown(paths)
                }
                other => other,
            });
            assert_eq!(used, Ok(unknown), "{tool}");
        }
    }
}
