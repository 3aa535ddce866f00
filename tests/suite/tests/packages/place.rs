//! Roots that have nothing but what was installed into them, and the demonstration there.

use std::path::Path;

use jvs_kit::live::capability::{Capability, granted};
use tempfile::TempDir;

use crate::made::{shell, the};

/// The demonstration in the root `$1`, by the program `$2` of it, and nothing of this machine
/// but its kernel.
const DEMO: &str = r#"
    mkdir -p -m 1777 "$1/tmp" "$1/proc" "$1/dev"
    touch "$1/dev/null"
    mount -t proc proc "$1/proc"
    mount --bind /dev/null "$1/dev/null"
    exec env -i PATH=/usr/bin:/bin /usr/sbin/chroot "$1" "$2" demo"#;

/// Runs the demonstration there, and sees that it came to its end.
pub(crate) fn demonstrated(root: &Path, program: &str) {
    // Its mounts are gone with it.
    let apart = format!(r#"exec unshare --mount bash -euc '{DEMO}' bash "$@""#);
    let shown = shell(&apart, &[root, Path::new(program)]).ok();
    assert!(shown.stdout().contains("E_FENCING_MISMATCH"), "{shown}");
}

#[test]
fn the_static_programs_run_where_there_is_nothing_else() {
    if !granted(&[Capability::Packages, Capability::Root]) {
        return;
    }
    let (dir, empty) = (TempDir::new().expect("a place"), TempDir::new().expect("a root"));
    let unpack = r#"tar -xzf "$1" -C "$2" --strip-components=1
        install -D -t "$3/bin" "$2/bin/jvs" "$2/bin/jvs-mcp"
        for program in "$3"/bin/*; do
            # No interpreter, no library.
            if readelf --program-headers --dynamic --wide "$program" | grep -E 'INTERP|NEEDED'
            then exit 1; fi
        done
        chroot "$3" /bin/jvs-mcp --version"#;
    let said = shell(unpack, &[&the("-linux.tar.gz"), dir.path(), empty.path()]).ok();
    assert!(said.stdout().starts_with("jvs-mcp "), "{said}");
    demonstrated(empty.path(), "/bin/jvs");
    // And what was unpacked is whole.
    for path in [
        "share/man/man1/jvs.1",
        "share/man/man1/jvs-lock-acquire.1",
        "share/man/man1/jvs-mcp.1",
        "share/man/man7/jvs-locks.7",
        "share/bash-completion/completions/jvs",
        "share/zsh/site-functions/_jvs",
        "share/fish/vendor_completions.d/jvs.fish",
        "lib/systemd/system/jvs-doctor@.service",
        "lib/systemd/system/jvs-doctor@.timer",
        "share/doc/jvs/LICENSE",
        "share/doc/jvs/THIRD-PARTY.txt",
        "Containerfile",
    ] {
        let there = fs_err::metadata(dir.path().join(path)).expect("it is in the archive");
        assert!(there.len() > 100, "{path}: {} bytes", there.len());
    }
}

/// Makes an image of the unpacked archive `$1` and runs the demonstration in it; `$2` is for
/// everything that is kept meanwhile. It asks no registry: there is nothing below the image.
const IMAGE: &str = r#"
    mkdir "$2/context"
    tar -xzf "$1" -C "$2/context" --strip-components=1
    mkdir "$2/tmp"
    export TMPDIR=$2/tmp HOME=$2
    echo '{ "default": [{ "type": "insecureAcceptAnything" }] }' >"$2/policy.json"
    images() { buildah --storage-driver vfs --root "$2/images" --runroot "$2/run" "${@:3}"; }
    images "$1" "$2" build --isolation chroot --signature-policy "$2/policy.json" --tag jvs "$2/context" >&2
    container=$(images "$1" "$2" from --signature-policy "$2/policy.json" --pull-never jvs)
    images "$1" "$2" run --isolation chroot "$container" -- jvs demo
    images "$1" "$2" inspect --type image --format '{{.OCIv1.Config}}' jvs
    images "$1" "$2" rm --all >&2"#;

#[test]
fn the_container_file_makes_an_image_in_which_the_demo_runs() {
    let wanted = [Capability::Packages, Capability::Root, Capability::Program("buildah")];
    if !granted(&wanted) {
        return;
    }
    let dir = TempDir::new().expect("a place");
    let shown = shell(IMAGE, &[&the("-linux.tar.gz"), dir.path()]).ok();
    assert!(shown.stdout().contains("E_FENCING_MISMATCH"), "{shown}");
    assert!(shown.stdout().contains("JVS_ENVIRONMENT=container"), "{shown}");
}

/// A virtual environment in `$2` that has the wheel `$1` and nothing else.
const VENV: &str = r#"
    export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
    python3 -m venv "$2/venv"
    pip="$2/venv/bin/python -m pip"
    # For another processor it is no wheel at all.
    for platform in manylinux2014_ppc64le macosx_11_0_arm64; do
        if $pip download --quiet --no-deps --only-binary=:all: --dest "$2/there" \
            --platform "$platform" "$1" 2>"$2/refused"
        then exit 1; fi
        grep --quiet 'not a supported wheel on this platform' "$2/refused"
    done
    # For any libc of this one it is.
    for platform in manylinux2014 musllinux_1_1; do
        $pip download --quiet --no-deps --only-binary=:all: --dest "$2/$platform" \
            --platform "${platform}_$(uname -m)" "$1" >&2
    done
    $pip install --quiet "$1" >&2
    cd "$2"
    export XDG_RUNTIME_DIR=$2
    PATH=$2/venv/bin:/usr/bin:/bin
    jvs demo
    python -c "import jvs
jvs.call('init', 'repo')
with jvs.hold('main', repo='repo') as hold: print('held with token', hold.fencing_token)""#;

#[test]
fn the_wheel_is_installed_on_every_libc_and_on_no_other_processor() {
    if !granted(&[Capability::Packages, Capability::Program("python3")]) {
        return;
    }
    let wheel = the(".whl");
    let dir = TempDir::new().expect("a place");
    let shown = shell(VENV, &[&wheel, dir.path()]).ok();
    assert!(shown.stdout().contains("E_FENCING_MISMATCH"), "{shown}");
    assert!(shown.stdout().ends_with("held with token 1\n"), "{shown}");
}
