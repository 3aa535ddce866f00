//! Ways in which a process gets away from whoever started it. Each is a line of shell
//! that starts `$W`, a program that writes for ever, and goes on. `$B` is one that also
//! multiplies, and `$DIR` a directory of its own.

/// A way, and the programs that it needs.
pub(super) struct Escape {
    pub(super) name: &'static str,
    pub(super) needs: &'static [&'static str],
    pub(super) script: &'static str,
}

impl Escape {
    /// Does it start more processes while it is being ended?
    pub(super) fn multiplies(&self) -> bool {
        self.script.contains("$B")
    }
}

const fn escape(name: &'static str, script: &'static str) -> Escape {
    Escape { name, needs: &[], script }
}

const fn with(needs: &'static [&'static str], name: &'static str, script: &'static str) -> Escape {
    Escape { name, needs, script }
}

/// Writes to `$1`. Whoever is asked to end, or sees its parent end, starts two more
/// instead; the length of `$2` says how many were started, and with 500 that ends.
pub(super) const BOMB: &str = r#"
more() {
    printf x >> "$2"
    if [ "$(wc -c < "$2")" -le 500 ]; then /bin/sh "$0" "$1" "$2" & fi
}
trap 'more "$1" "$2"; more "$1" "$2"' TERM HUP INT
read -r _ _ _ parent _ < /proc/$$/stat
while :; do
    echo x >> "$1"
    sleep 0.1
    read -r _ _ _ now _ < /proc/$$/stat
    if [ "$now" != "$parent" ]; then
        parent=$now
        more "$1" "$2"
        more "$1" "$2"
    fi
done
"#;

pub(super) const ESCAPES: [Escape; 17] = [
    escape("a session of its own", "setsid $W &"),
    escape("a double fork", "( setsid sh -c \"$W & exit\" & ) &"),
    escape("a deep double fork", "( ( ( $W & ) & ) & ) &"),
    escape("nohup", "nohup $W >/dev/null 2>&1 &"),
    with(
        &["script"],
        "a terminal of its own",
        "script -qfc \"$W\" /dev/null </dev/null >/dev/null 2>&1 &",
    ),
    with(&["bash"], "a job with a process group of its own", "bash -c \"set -m; $W & wait\" &"),
    with(
        &["script", "bash"],
        "jobs of an interactive shell",
        "{ echo \"$W &\"; echo \"$W\"; exec sleep 1000.$MARK; } | \
         script -qfc 'bash --norc -i' /dev/null >/dev/null 2>&1 &",
    ),
    with(&["tmux"], "a server", "tmux -L \"$MARK\" -f /dev/null new-session -d \"$W\""),
    with(
        &["screen"],
        "another server",
        "mkdir -m 700 $DIR; SCREENDIR=$DIR screen -dmS \"$MARK\" $W",
    ),
    escape("a stopped process", "sh -c \"$W & kill -STOP \\$\\$\" &"),
    escape(
        "five hundred children",
        "i=0; while [ $i -lt 500 ]; do sleep 1000.$MARK & i=$((i+1)); done; $W &",
    ),
    escape(
        "children that multiply while they are ended",
        "i=0; while [ $i -lt 12 ]; do $B & i=$((i+1)); done",
    ),
    with(
        &["python3"],
        "vfork and exec",
        "python3 -c 'import os,sys; os.posix_spawn(\"/bin/sh\", sys.argv[1:], {})' $W &",
    ),
    escape("closed descriptors", "$W <&- >&- 2>&- &"),
    escape("an empty environment", "env -i $W &"),
    with(
        &["unshare"],
        "a PID namespace of its own",
        "if [ $(id -u) = 0 ]; then unshare --pid --fork $W & else unshare --user --pid --fork $W & fi",
    ),
    escape("deaf to what is asked", "sh -c \"trap '' TERM HUP INT; exec $W\" &"),
];
