//! The units of systemd: what they say is right, shown in the documents, and does what it says.

use jvs_kit::live::binary;
use jvs_kit::live::capability::{Capability, granted};
use jvs_repo::layout::CONTROL_DIR;
use tempfile::TempDir;

use crate::made::{root, shell};

const UNITS: [&str; 2] = ["jvs-doctor@.service", "jvs-doctor@.timer"];

fn unit(name: &str) -> String {
    fs_err::read_to_string(root().join("packages/systemd").join(name)).expect("a unit")
}

#[test]
fn the_units_are_right_and_the_documents_show_them() {
    let admin = fs_err::read_to_string(root().join("docs/admin.md")).expect("the page");
    for name in UNITS {
        let block = format!("```ini\n# {name}\n{}```\n", unit(name));
        assert!(admin.contains(&block), "docs/admin.md: show {name} as it is:\n{block}");
    }
    if !granted(&[Capability::Program("systemd-analyze")]) {
        return;
    }
    let check = r#"systemd-analyze verify --man=no packages/systemd/* 2>&1"#;
    let said = shell(check, &[]).ok();
    assert_eq!(said.stdout(), "", "{said}");
    // That a mistake would be found.
    let dir = TempDir::new().expect("a place");
    let spoilt = r#"for unit in packages/systemd/*; do
            sed -e s/SuccessExitStatus/SuccesExitStatus/ "$unit" >"$1/${unit##*/}"
        done
        systemd-analyze verify --man=no "$1"/*.service 2>&1"#;
    let said = shell(spoilt, &[dir.path()]);
    assert!(said.stdout().contains("'SuccesExitStatus'"), "{said}");
}

/// Runs what the unit `$1` runs, for the repository `$2`, with the program in `$3`. It is one
/// script of a shell, written over several lines.
const STARTED: &str = r#"
    script=$(sed -n '/^ExecStart=/,$p' "$1" | sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba}' |
        sed -e "s|^ExecStart=/bin/sh -c '||" -e "s|'\$||" -e 's|%i|one|g')
    mkdir "$2/metrics"
    cd "$2/repo"
    status=0
    env -i PATH="$3:/usr/bin:/bin" JVS_METRICS="$2/metrics" JVS_SESSION_ID=doctor HOME="$2" \
        XDG_RUNTIME_DIR="$2" sh -c "$script" || status=$?
    ls "$2/metrics"
    cat "$2/metrics/jvs-one.prom"
    exit $status"#;

#[test]
fn the_service_leaves_metrics_and_says_whether_problems_remain() {
    let dir = TempDir::new().expect("a place");
    let jvs = binary::jvs();
    let made = r#"cd "$1" && HOME=$1 XDG_RUNTIME_DIR=$1 "$2" init repo"#;
    shell(made, &[dir.path(), &jvs]).ok();
    let service = root().join("packages/systemd").join(UNITS[0]);
    let bin = jvs.parent().expect("a directory");
    let healthy = shell(STARTED, &[&service, dir.path(), bin]).ok();
    assert!(healthy.stdout().starts_with("jvs-one.prom\n#"), "one file, whole: {healthy}");
    assert!(
        healthy
            .stdout()
            .lines()
            .any(|line| line.starts_with("jvs_healthy") && line.ends_with(" 1"))
    );

    // Problems that remain: metrics are left all the same.
    let control = dir.path().join("repo").join(CONTROL_DIR);
    shell(r#"rm -r "$1/metrics" "$2"/locks/*"#, &[dir.path(), &control]).ok();
    let ill = shell(STARTED, &[&service, dir.path(), bin]).exits(12);
    assert!(
        ill.stdout().lines().any(|line| line.starts_with("jvs_healthy") && line.ends_with(" 0"))
    );
}
