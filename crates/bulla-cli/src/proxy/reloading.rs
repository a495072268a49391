//! SIGHUP: the configuration is read anew.

use crate::exit::Failure;
use crate::interrupt::on_hang_up;
use bulla_proxy::proxy::Reload;
use bulla_proxy::service::{ServiceManager, State as Told};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What SIGHUP does. Before there is a proxy it is kept in mind: the file may have been read already, and have changed since.
#[derive(Clone, Default)]
pub(super) struct HangUps(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    reloading: Option<Reloading>,
    /// One came before there was a proxy.
    came: bool,
}

/// What is read anew, for which proxy, and who is told.
struct Reloading {
    file: PathBuf,
    reload: Reload,
    manager: Arc<ServiceManager>,
}

impl HangUps {
    /// From now on SIGHUP ends nothing.
    pub(super) fn await_them() -> Result<HangUps, Failure> {
        let hang_ups = HangUps::default();
        let state = hang_ups.0.clone();
        on_hang_up(move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            match &state.reloading {
                Some(reloading) => reloading.read_anew(),
                None => state.came = true,
            }
        })?;
        Ok(hang_ups)
    }

    /// From now on SIGHUP has `file` read, and the proxy do what is in it. Where something is wrong with it, that is told, and the
    /// old one holds.
    pub(super) fn have_reloaded(&self, file: PathBuf, reload: Reload, manager: Arc<ServiceManager>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let came = state.came;
        let reloading = state.reloading.insert(Reloading { file, reload, manager });
        if came {
            reloading.read_anew();
        }
    }
}

impl Reloading {
    fn read_anew(&self) {
        let Reloading { file, reload, manager } = self;
        if reload.is_too_late() {
            return;
        }
        tell(manager, Told::Reloading, "the configuration is read anew");
        let outcome = super::read_to_serve(file).and_then(|config| Ok(reload.reload(&config)?));
        match outcome {
            Ok(()) => {
                note!("{}: this configuration holds from now on", file.display());
                tell(manager, Told::Ready, "clients are served");
            }
            Err(failure) => {
                note!("the configuration stays as it was: {}", failure.message);
                let status = format!("clients are served, by the old configuration: {}", failure.message);
                tell(manager, Told::Ready, &status);
            }
        }
    }
}

/// Tells the service manager; where it cannot be told, whoever reads standard error.
pub(super) fn tell(manager: &ServiceManager, state: Told, status: &str) {
    if let Err(error) = manager.tell(state, status) {
        note!("{error}");
    }
}
