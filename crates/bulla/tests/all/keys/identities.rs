use bulla::ErrorKind;
use bulla::environment::KeyWrap;
use bulla::keys::identities::{decrypt_with_passphrase, encrypt_with_passphrase, generate, is_encrypted};
use bulla::keys::recipients::{Age, Identity, IdentityFile};
use std::io::{Read, Write};
use std::time::Duration;

fn wrap(recipients: &[&String]) -> Vec<u8> {
    let recipients = recipients.iter().map(|recipient| (*recipient).clone()).collect::<Vec<_>>();
    Age::default().wrap(&recipients, &[7; 32], Duration::from_secs(1)).unwrap()
}

#[test]
fn any_identity_of_any_file_opens_what_is_for_it() {
    let [(one, first), (two, second), (three, _)] = [(); 3].map(|()| generate());
    let both = IdentityFile::parse(&format!("# mine\n\n{}{}", *one, *two)).unwrap();
    let joined = IdentityFile::parse(&one).unwrap().and(IdentityFile::parse(&two).unwrap());
    for recipients in [&[&first][..], &[&second], &[&second, &first]] {
        let wrapped = wrap(recipients);
        for identity in [&both, &joined] {
            assert!(identity.unwrap(&wrapped).unwrap().is_some());
        }
        assert!(IdentityFile::parse(&three).unwrap().unwrap(&wrapped).unwrap().is_none());
    }
    assert!(IdentityFile::parse(&one).unwrap().unwrap(&wrap(&[&second])).unwrap().is_none());
}

/// What is wrapped here, the age library opens; and the other way round.
#[test]
fn what_is_wrapped_is_an_age_file() {
    let (text, recipient) = generate();
    let line = text.lines().last().unwrap();
    let identity = line.parse::<age::x25519::Identity>().unwrap();
    let wrapped = wrap(&[&recipient, &generate().1]);
    let mut reader =
        age::Decryptor::new(&wrapped[..]).unwrap().decrypt(std::iter::once(&identity as _)).unwrap();
    let mut key = Vec::new();
    reader.read_to_end(&mut key).unwrap();
    assert_eq!(key, [7; 32]);
    for position in 0..wrapped.len() {
        let mut damaged = wrapped.clone();
        damaged[position] ^= 1;
        let opened = IdentityFile::parse(&text).unwrap().unwrap(&damaged);
        assert!(!matches!(opened, Ok(Some(_))), "byte {position}");
    }
}

#[test]
fn a_file_under_a_passphrase_opens_with_it_alone() {
    let (text, _) = generate();
    let file = encrypt_with_passphrase(&text, "correct horse").unwrap();
    assert!(is_encrypted(file.as_bytes()) && !is_encrypted(text.as_bytes()));
    assert!(file.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n"), "{file}");
    assert_eq!(*decrypt_with_passphrase(file.as_bytes(), "correct horse").unwrap(), *text);
    let error = decrypt_with_passphrase(file.as_bytes(), "correct hose").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoKey, "{error}");
    assert!(error.to_string().contains("passphrase is wrong"), "{error}");
    assert_eq!(encrypt_with_passphrase(&text, "").unwrap_err().kind(), ErrorKind::Invalid);
}

/// An age file under a passphrase that takes 2^work rounds.
fn under_passphrase(work: u8, content: &[u8]) -> Vec<u8> {
    let mut recipient = age::scrypt::Recipient::new("x".to_owned().into());
    recipient.set_work_factor(work);
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&recipient as _)).unwrap();
    let mut file = Vec::new();
    let mut writer = encryptor.wrap_output(&mut file).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap();
    file
}

#[test]
fn a_binary_file_opens_too_and_a_damaged_one_is_told() {
    let (text, recipient) = generate();
    let file = under_passphrase(4, text.as_bytes());
    assert_eq!(*decrypt_with_passphrase(&file, "x").unwrap(), *text);
    for cut in [1, 20, file.len() / 2, file.len() - 1] {
        let error = decrypt_with_passphrase(&file[..cut], "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{cut}: {error}");
    }
    let error = decrypt_with_passphrase(&wrap(&[&recipient]), "x").unwrap_err();
    assert!(error.to_string().contains("encrypted to a recipient"), "{error}");
    let large = under_passphrase(4, &vec![b'#'; 65 << 10]);
    assert!(decrypt_with_passphrase(&large, "x").unwrap_err().to_string().contains("over 65536 bytes"));
}

/// A file that asks for the work of days is refused before any of it is done.
#[test]
fn work_is_bounded_before_it_is_done() {
    let file = under_passphrase(9, b"# nothing\n");
    for work in ["21", "22", "40", "63"] {
        let text = String::from_utf8_lossy(&file);
        let header = text.find(" 9\n").unwrap();
        let hostile = [&file[..header], b" ", work.as_bytes(), &file[header + 2..]].concat();
        let begin = std::time::Instant::now();
        let error = decrypt_with_passphrase(&hostile, "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{work}: {error}");
        assert!(error.to_string().contains(&format!("2^{work} rounds")), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{work}");
    }
}

#[test]
fn no_error_repeats_a_line_of_an_identity_file() {
    let (text, recipient) = generate();
    let secret = text.lines().last().unwrap();
    // Another last character than the one that is there.
    let last = if secret.ends_with('Q') { 'P' } else { 'Q' };
    let broken = format!("{}{last}", &secret[..secret.len() - 1]);
    for (text, said) in [
        (format!("{secret}\n{broken}\n"), "line 2 is not an age identity"),
        (format!("# x\n{recipient}\n"), "line 2 is a recipient, which is public"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n".to_owned(), "SSH key"),
        ("# nothing\n".to_owned(), "holds no age identity"),
        (String::new(), "holds no age identity"),
        ("AGE-PLUGIN-X-1QQQQ\n".to_owned(), "line 1 is not an age identity"),
    ] {
        let error = IdentityFile::parse(&text).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let message = format!("{error:?}");
        assert!(message.contains(said), "{message}");
        assert!(!message.contains(&secret[20..40]) && !message.contains("QQQQ"), "{message}");
    }
}
