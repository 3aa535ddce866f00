//! Ways in which a process gets away from whoever started it. Each is a line of shell
//! that starts `$W`, a program that writes for ever, and goes on.

/// A way, and the program that it needs.
pub(super) struct Escape {
    pub(super) name: &'static str,
    pub(super) needs: Option<&'static str>,
    pub(super) script: &'static str,
}

const fn escape(name: &'static str, script: &'static str) -> Escape {
    Escape { name, needs: None, script }
}

const fn with(needs: &'static str, name: &'static str, script: &'static str) -> Escape {
    Escape { name, needs: Some(needs), script }
}

pub(super) const ESCAPES: [Escape; 14] = [
    escape("a session of its own", "setsid $W &"),
    escape("a double fork", "( setsid sh -c \"$W & exit\" & ) &"),
    escape("a deep double fork", "( ( ( $W & ) & ) & ) &"),
    escape("nohup", "nohup $W >/dev/null 2>&1 &"),
    with(
        "script",
        "a terminal of its own",
        "script -qfc \"$W\" /dev/null </dev/null >/dev/null 2>&1 &",
    ),
    with("bash", "a job of an interactive shell", "bash -c \"set -m; $W & wait\" &"),
    with("tmux", "a server", "tmux -L \"$MARK\" -f /dev/null new-session -d \"$W\""),
    escape("a stopped process", "sh -c \"$W & kill -STOP \\$\\$\" &"),
    escape(
        "five hundred children",
        "i=0; while [ $i -lt 500 ]; do sleep 1000.$MARK & i=$((i+1)); done; $W &",
    ),
    with(
        "python3",
        "vfork and exec",
        "python3 -c 'import os,sys; os.posix_spawn(\"/bin/sh\", sys.argv[1:], {})' $W &",
    ),
    escape("closed descriptors", "$W <&- >&- 2>&- &"),
    escape("an empty environment", "env -i $W &"),
    with(
        "unshare",
        "a PID namespace of its own",
        "if [ $(id -u) = 0 ]; then unshare --pid --fork $W & else unshare --user --pid --fork $W & fi",
    ),
    escape("deaf to what is asked", "sh -c \"trap '' TERM HUP INT; exec $W\" &"),
];
