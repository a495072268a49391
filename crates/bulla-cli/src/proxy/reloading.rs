//! SIGHUP: the configuration is read anew.

use crate::exit::Failure;
use crate::interrupt::on_hang_up;
use bulla_proxy::proxy::Reload;
use bulla_proxy::service::{ServiceManager, State};
use std::path::PathBuf;
use std::sync::Arc;

/// From now on SIGHUP has `file` read, and the proxy do what is in it. Where something is wrong with it, that is told, and the old
/// one holds.
pub(super) fn reload_on_hang_up(
    file: PathBuf,
    reload: Reload,
    manager: Arc<ServiceManager>,
) -> Result<(), Failure> {
    on_hang_up(move || {
        if reload.is_too_late() {
            return;
        }
        tell(&manager, State::Reloading, "the configuration is read anew");
        let outcome = super::read(&file).and_then(|config| Ok(reload.reload(&config)?));
        match outcome {
            Ok(()) => {
                note!("{}: this configuration holds from now on", file.display());
                tell(&manager, State::Ready, "clients are served");
            }
            Err(failure) => {
                note!("the configuration stays as it was: {}", failure.message);
                let status = format!("clients are served, by the old configuration: {}", failure.message);
                tell(&manager, State::Ready, &status);
            }
        }
    })
}

/// Tells the service manager; where it cannot be told, whoever reads standard error.
pub(super) fn tell(manager: &ServiceManager, state: State, status: &str) {
    if let Err(error) = manager.tell(state, status) {
        note!("{error}");
    }
}
