//! The package of Debian.

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::Outcome;
use tempfile::TempDir;

use crate::made::{root, shell, the};
use crate::place::demonstrated;

/// Fills `$1` with the C library of this machine and its database of packages, and with
/// nothing else.
const ROOT: &str = r#"
    root=$1
    database=$root/var/lib/dpkg
    mkdir -p "$database"/{info,updates,triggers}
    base=$(dpkg-query --show --showformat '${Depends}' libgcc-s1 | grep -o '^gcc-[0-9]*-base')
    for package in libc6 libgcc-s1 libcrypt1 "$base"; do
        dpkg -L "$package" | while read -r path; do [ -d "$path" ] || echo "${path#/}"; done
        dpkg-query --status "$package" >>"$database/status"
        echo >>"$database/status"
        cp /var/lib/dpkg/info/"$package".list "$database/info" 2>/dev/null ||
            cp /var/lib/dpkg/info/"$package":*.list "$database/info"
    done | tar -C / --no-recursion --files-from=- -cf - | tar -C "$root" -xf -
    touch "$database/available""#;

fn clean_root() -> TempDir {
    let root = TempDir::new().expect("a root");
    shell(ROOT, &[root.path()]).ok();
    root
}

/// What is in a root, but for the database of packages.
fn what_is_in(root: &TempDir) -> String {
    let list = r#"cd "$1" && find . -path ./var/lib/dpkg -prune -o -print | sort"#;
    shell(list, &[root.path()]).ok().stdout().to_owned()
}

fn dpkg(words: &str, root: &TempDir) -> Outcome {
    let command = format!(r#"dpkg --root="$1" --log=/dev/null {words} "$2" 2>&1"#);
    shell(&command, &[root.path(), &the(".deb")])
}

#[test]
fn the_package_of_debian_is_installed_used_and_gone_without_a_trace() {
    let wanted = [Capability::Packages, Capability::Root, Capability::Program("dpkg-shlibdeps")];
    if !granted(&wanted) {
        return;
    }
    let root = clean_root();
    let before = what_is_in(&root);
    dpkg("--install", &root).ok();
    let installed = what_is_in(&root);
    for path in [
        "./usr/bin/jvs",
        "./usr/bin/jvs-mcp",
        "./usr/share/man/man1/jvs-run.1.gz",
        "./usr/share/bash-completion/completions/jvs",
        "./usr/share/zsh/vendor-completions/_jvs",
        "./usr/share/fish/vendor_completions.d/jvs.fish",
        "./usr/lib/systemd/system/jvs-doctor@.timer",
        "./usr/share/doc/jvs/copyright",
        "./usr/share/doc/jvs/THIRD-PARTY.txt.gz",
    ] {
        assert!(installed.lines().any(|line| line == path), "no {path} in\n{installed}");
    }
    demonstrated(root.path(), "/usr/bin/jvs");
    // An upgrade is another of the same.
    dpkg("--install", &root).ok();
    shell(r#"dpkg --root="$1" --log=/dev/null --purge jvs"#, &[root.path()]).ok();
    let after = what_is_in(&root);
    // What the demonstration asked for.
    let asked = ["./tmp", "./proc", "./dev", "./dev/null"];
    let after: Vec<&str> = after.lines().filter(|it| !asked.contains(it)).collect();
    assert_eq!(after, before.lines().collect::<Vec<_>>(), "is it all gone?");
}

#[test]
fn without_its_libc_the_package_of_debian_is_refused() {
    let wanted = [Capability::Packages, Capability::Root, Capability::Program("dpkg-shlibdeps")];
    if !granted(&wanted) {
        return;
    }
    let root = TempDir::new().expect("a root");
    let database = root.path().join("var/lib/dpkg");
    for dir in ["info", "updates", "triggers"] {
        fs_err::create_dir_all(database.join(dir)).expect("a directory");
    }
    fs_err::write(database.join("status"), "").expect("written");
    let refused = dpkg("--install", &root).exits(1);
    assert!(refused.stdout().contains("depends on libc6 (>= "), "{refused}");
}

/// The minor version of the newest glibc that anything in a program asks for.
fn floor_of(program: &std::path::Path) -> u32 {
    let asked = r#"readelf --version-info --wide "$1" | grep -o 'GLIBC_2\.[0-9]*' | sort -u"#;
    let said = shell(asked, &[program]).ok();
    let minors = said.stdout().lines().filter_map(|line| line.strip_prefix("GLIBC_2."));
    minors.filter_map(|minor| minor.parse().ok()).max().expect("it asks for some glibc")
}

#[test]
fn the_oldest_glibc_is_the_one_that_the_documents_and_the_package_name() {
    if !granted(&[Capability::Packages, Capability::Program("dpkg-shlibdeps")]) {
        return;
    }
    let page = fs_err::read_to_string(root().join("docs/install.md")).expect("the page");
    let stated = page.split("**glibc 2.").nth(1).and_then(|rest| rest.split("**").next());
    let stated: u32 = stated.and_then(|it| it.parse().ok()).expect("docs/install.md names it");
    let dir = TempDir::new().expect("a place");
    let fields = shell(
        r#"dpkg-deb --extract "$1" "$2" && dpkg-deb --field "$1" Depends"#,
        &[&the(".deb"), dir.path()],
    );
    let fields = fields.ok();
    let needed = ["jvs", "jvs-mcp"].map(|it| floor_of(&dir.path().join("usr/bin").join(it)));
    let needed = needed.into_iter().max().expect("there are two");
    // A release has the unwinder in it, which asks for a newer one than the quick build.
    assert!(needed <= stated, "the programs need 2.{needed}, docs/install.md says 2.{stated}");
    if std::env::var_os("JVS_DIST").is_some() {
        assert_eq!(needed, stated, "docs/install.md asks for more than a release needs");
    }
    let said = fields.stdout().split("libc6 (>= 2.").nth(1).and_then(|it| it.split(')').next());
    let said: u32 = said.and_then(|it| it.parse().ok()).expect("the package depends on libc6");
    assert!(said >= needed, "{fields}: the programs need 2.{needed}");
}

#[test]
fn lintian_has_nothing_to_say() {
    if !granted(&[Capability::Packages, Capability::Program("lintian")]) {
        return;
    }
    let dir = TempDir::new().expect("a place");
    // As root it runs as nobody else.
    let check = r#"cp "$1" "$2" && cd "$2" && unset TMPDIR &&
        lintian --allow-root --no-user-dirs --fail-on error,warning --tag-display-limit 0 *.deb"#;
    let said = shell(check, &[&the(".deb"), dir.path()]).ok();
    assert_eq!(said.stdout(), "", "{said}");
}

/// Makes the package once more, of the programs `$2` has, into `$3`, and compares.
const AGAIN: &str = r#"
    dpkg-deb --extract "$1" "$2"
    gunzip "$2/usr/share/doc/jvs/THIRD-PARTY.txt.gz"
    export SOURCE_DATE_EPOCH=$(stat -c %Y "$2/usr/bin/jvs")
    version=$(dpkg-deb --field "$1" Version)
    umask 077
    packages/deb "$2/usr/bin" "$2/usr/share/doc/jvs/THIRD-PARTY.txt" "$version" "$3" >&2
    cmp "$1" "$3/$(basename "$1")""#;

#[test]
fn the_same_programs_make_the_same_package_to_the_last_byte() {
    if !granted(&[Capability::Packages, Capability::Program("dpkg-shlibdeps")]) {
        return;
    }
    let (old, new) = (TempDir::new().expect("a place"), TempDir::new().expect("a place"));
    shell(AGAIN, &[&the(".deb"), old.path(), new.path()]).ok();
}
