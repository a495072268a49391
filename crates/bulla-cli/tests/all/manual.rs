//! Completions and manual pages, made from the command's own definitions.

use crate::support::{Place, arguments, bulla, exit};

#[test]
fn every_shell_has_completions_for_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bulla(["completions", shell]).exits(exit::DONE).out;
        for word in ["append", "prove", "subject-from", "consistency", "purpose", "flags"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    bulla(["completions", "dos"]).exits(exit::USAGE);
    let script = bulla(["completions", "bash"]).out;
    let checked = std::process::Command::new("bash").args(["-n", "-c", &script]).status().unwrap();
    assert!(checked.success(), "bash reads its own");
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::empty();
    std::fs::create_dir(place.path("man")).unwrap();
    bulla(arguments!["man", place.path("man")]).exits(exit::DONE);
    for page in
        ["bulla", "bulla-init", "bulla-append", "bulla-verify", "bulla-export", "bulla-prove", "bulla-check"]
    {
        let text = std::fs::read_to_string(place.path("man").join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".TH bulla") && text.contains(".SH SYNOPSIS"), "{page}");
        for section in ["\"EXIT STATUS\"", "ENVIRONMENT", "EXAMPLES"] {
            assert!(text.contains(&format!(".SH {section}")) || page == "bulla", "{page}: {section}");
        }
        // What a screen has no room for.
        if ["bulla-export", "bulla-prove"].contains(&page) {
            assert!(text.contains("For this purpose") && text.contains("With these flags"), "{page}");
        }
    }
    let ran = bulla(arguments!["man", place.path("nowhere")]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("nowhere is no directory: make it (`mkdir -p "), "{ran:?}");
}
