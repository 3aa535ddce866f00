//! What this machine must have for a test of real filesystems, and what happens
//! when it does not: a loud skip on a developer's machine, a failure in CI.
//!
//! A skip is printed and, because test runners swallow the output of passing
//! tests, also appended to the file that `JVS_SKIPPED_LOG` names; `scripts/test`
//! counts it in its summary.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err::OpenOptions;

/// Something that a test needs and a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// The right to mount.
    Root,
    /// The FUSE device.
    Fuse,
    /// The `juicefs` program; see [`juicefs_program`].
    JuiceFs,
    /// Java, and the TLA+ model checker that `scripts/setup` put into `target/tla`.
    Tlc,
    /// `mdbook`, which `scripts/setup` put into `target/mdbook`; see [`mdbook_program`].
    MdBook,
    /// `mypy`, which `scripts/setup` put into `target/venv`; see [`mypy_program`].
    Mypy,
    /// The checker of Kubernetes manifests that `scripts/setup` put into `target/venv`; see
    /// [`kubernetes_validate_program`].
    KubernetesValidate,
    /// Loop devices.
    Loop,
    /// The MCP clients that `scripts/setup` put into `target/mcp`.
    McpClients,
    /// A validator of bills of materials, which `scripts/setup` put into `target/venv`.
    CycloneDx,
    /// What `scripts/release --quick` made; see [`packages`].
    Packages,
    /// A program on the search path.
    Program(&'static str),
}

impl Capability {
    /// Why the machine does not have it, or nothing if it does.
    fn missing(self) -> Option<String> {
        match self {
            Self::Root => (!rustix::process::geteuid().is_root()).then(|| "not root".to_owned()),
            Self::Fuse => unusable_device("/dev/fuse"),
            Self::Loop => unusable_device("/dev/loop-control"),
            Self::MdBook => {
                let program = mdbook_program();
                (!program.is_file()).then(|| format!("no {}", program.display()))
            }
            Self::Mypy => {
                let program = mypy_program();
                (!program.is_file()).then(|| format!("no {}", program.display()))
            }
            Self::KubernetesValidate => {
                let program = kubernetes_validate_program();
                (!program.is_file()).then(|| format!("no {}", program.display()))
            }
            Self::Tlc => {
                let jar = Path::new(env!("CARGO_MANIFEST_DIR"));
                let jar = jar.join("../../target/tla/tla2tools.jar");
                Self::Program("java")
                    .missing()
                    .or_else(|| (!jar.is_file()).then(|| format!("no {}", jar.display())))
            }
            Self::CycloneDx => {
                let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/lib");
                let mut pythons = fs_err::read_dir(libraries).into_iter().flatten().flatten();
                let there = pythons.any(|python| {
                    python.path().join("site-packages/cyclonedx/validation").is_dir()
                });
                (!there).then(|| "no cyclonedx in target/venv".to_owned())
            }
            Self::Packages => {
                let sums = packages().join("SHA256SUMS");
                (!sums.is_file())
                    .then(|| format!("no {}: scripts/release --quick makes it", sums.display()))
            }
            Self::McpClients => {
                let installed = Path::new(env!("CARGO_MANIFEST_DIR"));
                let installed = installed.join("../../target/mcp/installed");
                (!installed.is_file()).then(|| format!("no {}", installed.display()))
            }
            Self::JuiceFs => {
                let program = juicefs_program();
                (!program.is_file()).then(|| format!("no {}", program.display()))
            }
            Self::Program(name) => find_program(name).is_none().then(|| format!("no {name}")),
        }
    }
}

/// Whether the machine has all of these. If not, the caller returns from its
/// test, which has been reported as skipped.
///
/// # Panics
/// When something is missing although the environment demands the real thing
/// (`CI` or `JVS_REQUIRE_REAL=1`): there, a skipped test would be a lie.
#[must_use = "a test without what it needs returns"]
#[track_caller]
pub fn granted(wanted: &[Capability]) -> bool {
    let missing: Vec<_> = wanted.iter().filter_map(|capability| capability.missing()).collect();
    match verdict(&missing, real_is_required()) {
        Verdict::Run => true,
        Verdict::Skip(why) => {
            report_skip(&why);
            false
        }
        Verdict::Fail(why) => panic!("{why}; run scripts/setup as root"),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    Skip(String),
    Fail(String),
}

fn verdict(missing: &[String], required: bool) -> Verdict {
    let why = missing.join(", ");
    match (missing.is_empty(), required) {
        (true, _) => Verdict::Run,
        (false, true) => Verdict::Fail(format!("this machine must not skip: {why}")),
        (false, false) => Verdict::Skip(why),
    }
}

fn real_is_required() -> bool {
    demands_real(std::env::var("CI").ok().as_deref())
        || demands_real(std::env::var("JVS_REQUIRE_REAL").ok().as_deref())
}

fn demands_real(value: Option<&str>) -> bool {
    !matches!(value, None | Some("" | "0" | "false"))
}

/// Reports that a part of a test is skipped because the host does not allow what it
/// is about. For ways of which a program has several and uses what there is: not a
/// lack of the machine, so CI may do without.
pub fn skip(why: &str) {
    report_skip(why);
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn report_skip(why: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {why}", thread.name().unwrap_or("a test"));
    eprintln!("{line}");
    if let Some(log) = std::env::var_os("JVS_SKIPPED_LOG") {
        let mut log = OpenOptions::new().create(true).append(true).open(log).expect("the skip log");
        writeln!(log, "{line}").expect("the skip log takes a line");
    }
}

fn unusable_device(path: &str) -> Option<String> {
    OpenOptions::new().read(true).write(true).open(path).err().map(|e| e.to_string())
}

/// Where `name` is on the search path, the administrator's directories included.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
}

/// `$JVS_JUICEFS`, else the program that `scripts/setup` put into `target/venv`.
pub fn juicefs_program() -> PathBuf {
    std::env::var_os("JVS_JUICEFS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/juicefs"),
        PathBuf::from,
    )
}

/// The program that makes a book of `docs/`.
pub fn mdbook_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mdbook/bin/mdbook")
}

/// `$JVS_DIST`, else the directory that `scripts/release --quick` fills.
pub fn packages() -> PathBuf {
    std::env::var_os("JVS_DIST").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dist"),
        PathBuf::from,
    )
}

/// The program that checks the types of Python.
pub fn mypy_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/mypy")
}

/// The checker of Kubernetes manifests of `scripts/setup`.
pub fn kubernetes_validate_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/kubernetes-validate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_skips_at_home_and_fails_where_the_real_thing_is_required() {
        let lack = ["no juicefs".to_owned(), "not root".to_owned()];
        assert_eq!(verdict(&lack, false), Verdict::Skip("no juicefs, not root".to_owned()));
        assert!(matches!(verdict(&lack, true), Verdict::Fail(why) if why.contains("no juicefs")));
        assert_eq!(verdict(&[], true), Verdict::Run);
    }

    #[test]
    fn only_an_affirmative_value_demands_the_real_thing() {
        for (value, demanded) in
            [(None, false), (Some(""), false), (Some("0"), false), (Some("true"), true)]
        {
            assert_eq!(demands_real(value), demanded, "{value:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let lack = Capability::Program("no-such-program").missing();
        assert_eq!(lack.as_deref(), Some("no no-such-program"));
        assert_eq!(Capability::Program("sh").missing(), None);
    }
}
