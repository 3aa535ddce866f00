//! What administrators take from the documents: the CronJob, the alert rules and what they
//! are about, by the tools that will read them.

use std::collections::BTreeSet;

use jvs_kit::live::capability::{Capability, granted, kubernetes_validate_program};

use crate::book::{blocks, page};
use crate::stage::Stage;

/// The blocks of the page for administrators that begin with this word.
fn of_admins(kind: &str) -> Vec<String> {
    let all = blocks(&page("admin.md")).into_iter();
    all.filter(|(its, _)| its == kind).map(|(_, text)| text).collect()
}

#[test]
fn what_prometheus_is_told_of_two_repositories_passes_its_checker_and_does_not_collide() {
    if !granted(&[Capability::Program("promtool")]) {
        return;
    }
    let stage = Stage::empty();
    stage.types("jvs init one; jvs init two; cd one/main; jvs lock acquire --no-keeper").ok();
    stage.types("cd one/main; echo text > file; jvs snapshot first").ok();
    let mut series = BTreeSet::new();
    for repository in ["one", "two"] {
        for depth in ["--strict", ""] {
            let told = format!("jvs --repo {repository} doctor {depth} --format prometheus");
            stage.types(&format!("{told} | promtool check metrics")).ok();
        }
        let told = stage.types(&format!("jvs --repo {repository} doctor --format prometheus"));
        for line in told.ok().stdout().lines().filter(|line| !line.starts_with('#')) {
            let (name, _) = line.rsplit_once(' ').expect("a value");
            assert!(series.insert(name.to_owned()), "twice: {name}");
        }
    }
    for name in ["jvs_newest_snapshot_age_seconds", "jvs_lock_age_seconds"] {
        let of: Vec<_> = series.iter().filter(|one| one.starts_with(name)).collect();
        assert_eq!(of.len(), 1, "{of:?}");
        assert!(of[0].contains("/one\",worktree=\"main\""), "{of:?}");
    }
}

#[test]
fn locks_that_were_lost_and_waits_are_counted() {
    let stage = Stage::empty();
    stage.types("jvs init r; cd r/main; jvs config set reclaim.same_user true").ok();
    let told = || stage.types("jvs --repo r doctor --format prometheus").ok().stdout().to_owned();
    let lost = |kind: &str| {
        let text = told();
        let mut lines = text.lines().filter(|line| line.starts_with("jvs_locks_lost_last_day{"));
        let line = lines.find(|line| line.contains(&format!("kind=\"{kind}\"")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).expect("a number")
    };
    assert_eq!((lost("reclaim"), lost("steal")), (0, 0));
    let taken = "cd r/main; JVS_SESSION_ID=a jvs lock acquire --no-keeper --lease 1h; \
                 JVS_SESSION_ID=b jvs lock reclaim --no-keeper --reason mine; \
                 JVS_SESSION_ID=b jvs lock release";
    stage.types(taken).ok();
    assert_eq!((lost("reclaim"), lost("steal")), (1, 0));
    assert!(told().contains("jvs_lock_waiters{") && told().contains(",worktree=\"main\"} 0"));
    let waits = "cd r/main; JVS_SESSION_ID=a jvs lock acquire --no-keeper --lease 1h; \
                 JVS_SESSION_ID=b jvs lock acquire --no-keeper --wait=1m & sleep 1.5; \
                 jvs doctor --format prometheus | grep '^jvs_lock_' ; kill $!";
    let text = stage.types(waits).ok().stdout().to_owned();
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a line");
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number")
    };
    assert!(of("jvs_lock_waiters") > 0.0 && of("jvs_lock_longest_wait_seconds") > 0.5, "{text}");
}

#[test]
fn the_alert_rules_pass_their_checker_and_tell_repositories_apart() {
    if !granted(&[Capability::Program("promtool")]) {
        return;
    }
    let stage = Stage::empty();
    let rules = page("jvs-alerts.yml");
    let place = stage.path("work");
    fs_err::write(place.join("jvs-alerts.yml"), &rules).expect("written");
    stage.types("promtool check rules jvs-alerts.yml").ok();
    // Two repositories of one host; one of them is ill, and locked for long.
    let test = r#"
rule_files: [jvs-alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'jvs_findings{repository="/a",code="D_HEAD_MISSING",severity="error"}', values: '1x60' }
      - { series: 'jvs_findings{repository="/b",code="D_HEAD_MISSING",severity="error"}', values: '0x60' }
      - { series: 'jvs_lock_age_seconds{repository="/a",worktree="main"}', values: '30000x60' }
      - { series: 'jvs_lock_age_seconds{repository="/b",worktree="main"}', values: '30000x60' }
      - { series: 'jvs_newest_snapshot_age_seconds{repository="/a",worktree="main"}', values: '30000x60' }
      - { series: 'jvs_newest_snapshot_age_seconds{repository="/b",worktree="main"}', values: '10x60' }
      - { series: 'jvs_locks_lost_last_day{repository="/a",kind="steal"}', values: '4x60' }
      - { series: 'jvs_locks_lost_last_day{repository="/a",kind="reclaim"}', values: '4x60' }
      - { series: 'jvs_locks_lost_last_day{repository="/b",kind="acquire"}', values: '40x60' }
    alert_rule_test:
      - alertname: JvsRepositoryUnhealthy
        eval_time: 30m
        exp_alerts:
          - exp_labels: { repository: /a, code: D_HEAD_MISSING, severity: critical }
            exp_annotations:
              summary: "jvs: D_HEAD_MISSING in /a"
              description: "Something in the repository cannot be used or trusted. Run `jvs doctor --strict --dry-run` in /a."
      - alertname: JvsNothingPublished
        eval_time: 30m
        exp_alerts:
          - exp_labels: { repository: /a, worktree: main, severity: info }
            exp_annotations:
              summary: "jvs: worktree main of /a is locked and has no snapshot of the last 8 hours"
              description: "What was done under the lock is in no snapshot yet. `jvs snapshot` by its holder keeps it."
      - alertname: JvsLocksTakenAway
        eval_time: 30m
        exp_alerts:
          - exp_labels: { repository: /a, severity: warning }
            exp_annotations:
              summary: "jvs: 8 locks of /a were taken from their holders within a day"
              description: "Holders die, or are overruled. See by whom: jvs --repo /a events --since 1d"
"#;
    fs_err::write(place.join("test.yml"), test).expect("written");
    stage.types("promtool test rules test.yml").ok();
    // What they are about is told, and the page explains it.
    stage.types("jvs init r").ok();
    let told = stage.types("jvs --repo r doctor --strict --format prometheus").ok();
    let admin = page("admin.md");
    let known: Vec<&str> = told
        .stdout()
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next())
        .collect();
    for name in &known {
        assert!(admin.contains(&format!("`{name}`")), "docs/admin.md does not explain {name}");
    }
    for line in rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")) {
        let words = line.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        for name in words.filter(|word| word.starts_with("jvs_")) {
            assert!(known.contains(&name), "nobody tells {name}: {line}");
        }
    }
}

#[test]
fn the_cron_job_is_what_kubernetes_knows() {
    if !granted(&[Capability::KubernetesValidate]) {
        return;
    }
    let stage = Stage::empty();
    let program = kubernetes_validate_program().display().to_string();
    let manifests = of_admins("yaml");
    assert_eq!(manifests.len(), 1);
    let place = stage.path("work");
    fs_err::write(place.join("good.yaml"), &manifests[0]).expect("written");
    stage.types(&format!("'{program}' --strict --no-warn good.yaml")).ok();
    // The checker sees what is wrong.
    let wrong = manifests[0].replace("concurrencyPolicy", "concurencyPolicy");
    fs_err::write(place.join("wrong.yaml"), wrong).expect("written");
    stage.types(&format!("! '{program}' --strict --no-warn wrong.yaml")).ok();
}
