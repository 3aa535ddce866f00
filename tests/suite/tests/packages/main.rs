//! What is given out, installed where there is nothing else, and used there: the directory
//! that `scripts/release` filled. `JVS_DIST` names another than that of `--quick`.

mod bill;
mod debian;
mod made;
mod place;
mod units;
mod whole;
