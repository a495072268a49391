//! Console blocks of documents, performed as they stand there: lines with `$ ` are typed, the others are printed, `…` stands for
//! anything, and on a line of its own for any number of lines. A command ends with 0, unless it prints its status itself.

use std::path::Path;
use std::process::Command;

/// A command, and what it prints, with the number of its line.
pub(crate) struct Step<'a> {
    pub(crate) line: usize,
    pub(crate) command: &'a str,
    printed: Vec<&'a str>,
}

/// The commands of the console blocks in some lines, of which the first has the number `first`.
pub(crate) fn steps(text: &str, first: usize) -> Vec<Step<'_>> {
    let (mut steps, mut inside) = (Vec::<Step<'_>>::new(), false);
    for (line, content) in (first..).zip(text.lines()) {
        match (inside, content.strip_prefix("$ ")) {
            (false, _) => inside = content == "```console",
            (true, _) if content == "```" => inside = false,
            (true, Some(command)) => steps.push(Step { line, command, printed: Vec::new() }),
            (true, None) => {
                let last = steps.last_mut().unwrap_or_else(|| panic!("line {line} is printed by no command"));
                last.printed.push(content);
            }
        }
    }
    steps
}

/// Performs them in `directory`, one after the other in one shell; what differs first.
pub(crate) fn perform<'a>(
    steps: impl IntoIterator<Item = &'a Step<'a>> + Clone,
    directory: &Path,
) -> Result<(), String> {
    const NEXT: &str = "==== next\n";
    let mut script = "set -o pipefail\nexec 2>&1\n".to_owned();
    for Step { command, .. } in steps.clone() {
        script += &format!(
            "{command}\nended=$?; [ $ended = 0 ] || echo \"(exit status $ended)\"\nprintf '%s' '{NEXT}'\n"
        );
    }
    let bulla = Path::new(env!("CARGO_BIN_EXE_bulla")).parent().unwrap();
    let path = format!("{}:{}", bulla.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", path)
        .stdin(std::process::Stdio::null())
        .current_dir(directory)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let mut told = told.split(NEXT);
    for Step { line, command, printed } in steps {
        let told = told.next().unwrap_or_default().lines().collect::<Vec<_>>();
        compare(printed, &told)
            .map_err(|why| format!("line {line}: {command}\n{why}; it printed\n{}", told.join("\n")))?;
    }
    Ok(())
}

/// What is the first difference.
fn compare(printed: &[&str], told: &[&str]) -> Result<(), String> {
    let (mut told, mut any) = (told.iter(), false);
    for line in printed {
        if *line == "…" {
            any = true;
            continue;
        }
        loop {
            match told.next() {
                None => return Err(format!("nothing is printed for {line:?}")),
                Some(told) if is_as_printed(line, told) => break,
                Some(_) if any => {}
                Some(told) => return Err(format!("{told:?} is not {line:?}")),
            }
        }
        any = false;
    }
    match told.next() {
        Some(told) if !any => Err(format!("{told:?} is printed, too")),
        _ => Ok(()),
    }
}

/// Whether `line` is what is printed, where `…` stands for anything.
fn is_as_printed(printed: &str, line: &str) -> bool {
    let mut parts = printed.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    let mut any = false;
    for part in parts {
        any = true;
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || any && printed.ends_with('…')
}

#[test]
fn the_comparison_can_fail() {
    assert!(is_as_printed("read … of … blocks", "read 1 of 22 blocks"));
    assert!(is_as_printed("ok: …", "ok: yes"));
    assert!(!is_as_printed("read … of … blocks", "read 1 of 22 blocks and more"));
    assert!(!is_as_printed("ok", "ok: yes") && !is_as_printed("ok: …", "no"));
    assert!(compare(&["a", "…", "c"], &["a", "b", "b", "c"]).is_ok());
    assert!(compare(&["a", "…"], &["a"]).is_ok() && compare(&["…", "c"], &["c"]).is_ok());
    assert!(compare(&["a", "…", "c"], &["a", "b"]).is_err() && compare(&["a"], &["a", "b"]).is_err());
    assert!(compare(&["a", "b"], &["a"]).is_err() && compare(&["b"], &["a", "b"]).is_err());
}

#[test]
fn a_step_that_differs_or_fails_is_named() {
    let text =
        "Words\n```console\n$ echo one\none\n$ false\n```\n$ no block\n```console\n$ echo two\nthree\n```\n";
    let all = steps(text, 10);
    assert_eq!(all.iter().map(|step| step.line).collect::<Vec<_>>(), [12, 14, 18]);
    let place = tempfile::tempdir().unwrap();
    perform(&all[..1], place.path()).unwrap();
    let failed = perform(&all[1..2], place.path()).unwrap_err();
    assert!(failed.contains("line 14: false") && failed.contains("exit status 1"), "{failed}");
    let differs = perform(&all[2..], place.path()).unwrap_err();
    assert!(differs.contains("line 18") && differs.contains("\"two\" is not \"three\""), "{differs}");
}
