//! `keys`, and identity files in all their forms.

mod identities;
mod plugins;
mod recipients;

use crate::support::{Ran, exit};

/// The recipient that `new-identity` makes, with its file.
fn new_identity(place: &crate::support::Place, name: &str) -> (String, String) {
    let path = place.path(name).into_os_string().into_string().unwrap();
    let made = place.run("keys", &["new-identity", "-o", &path]).exits(exit::DONE);
    (path, made.out.trim_end().to_owned())
}

/// Runs a command at a terminal: whenever a prompt is shown, types the answer. Also whether the terminal shows what is
/// typed in the end.
pub(crate) fn at_a_terminal(
    environment: &[(&str, &str)],
    command: &[std::ffi::OsString],
    answers: &[(&str, &str)],
) -> (Ran, bool) {
    const SCRIPT: &str = r#"
import json, os, pty, sys, termios, time
answers, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown = b""
since = 0
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    shown += data
    if answers and answers[0][0].encode() in shown[since:]:
        since = len(shown)
        time.sleep(float(os.environ.get("ANSWER_AFTER", "0")))
        os.write(terminal, answers.pop(0)[1].encode())
echo = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
_, status = os.waitpid(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), shown.decode(), echo]))
"#;
    let answers = serde_json::to_string(answers).unwrap();
    let ran = std::process::Command::new("python3")
        .args(["-c", SCRIPT, &answers, env!("CARGO_BIN_EXE_bulla")])
        .args(command)
        .env_remove("BULLA_PASSPHRASE_FILE")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let (code, out, echo) = serde_json::from_slice::<(i32, String, bool)>(&ran.stdout).unwrap();
    (Ran { code, out, err: String::new() }, echo)
}
