//! Makes a repository, changes a setting, and finds both again from below.
#![expect(clippy::print_stdout, reason = "shows what it does")]

use std::error::Error;

use jvs_repo::config;
use jvs_repo::discover::discover;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::name::WorktreeName;
use jvs_repo::nursery::{Adopt, Unborn};
use jvs_repo::repo::Repo;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;

    // Built unseen, after a probe of the filesystem; a rename makes it a repository.
    let repo = Unborn::prepare(&dir.path().join("r"), Adopt::No)?.finish()?;
    println!("made repository {}", repo.id());

    // A key that does not exist, or a value out of its range, changes nothing.
    repo.set_config("retention.keep_last", "20", &SystemEntropy)?;
    for (key, value) in [("retention.keep", "20"), ("retention.keep_last", "many")] {
        let refused = repo.set_config(key, value, &SystemEntropy);
        println!("{key} = {value}: {}", refused.err().ok_or("it was taken")?);
    }

    // From anywhere below, as a command does.
    let payload = repo.payload(&WorktreeName::main())?;
    let found = Repo::open(&discover(&payload)?.root)?;
    assert_eq!(found.id(), repo.id());
    println!("retention.keep_last = {}", config::get(&found.config()?, "retention.keep_last")?);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
