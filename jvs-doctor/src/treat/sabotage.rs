//! What would be done without a rule, where that is more than an expression: see
//! [`jvs_repo::mutation`].

use jvs_lock::Lease;

use super::RepairError;

/// Others that rely on it.
pub(super) fn give_back(lease: Lease<'_>) -> Result<(), RepairError> {
    lease.release().map_err(|failed| failed.error)?;
    Ok(())
}
