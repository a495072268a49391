//! [`Hello`]: what a `HELLO` asks for, read as the server reads it.

use crate::command::until_zero;
use crate::resp::Arguments;

/// No more arguments are looked at, the name counted: those of a `HELLO` with all of its options.
const LONGEST: u64 = 7;

/// `HELLO [protocol [AUTH user password] [SETNAME name]]`, each option once, in any order.
pub(super) struct Hello<'a> {
    pub(super) protocol: Option<&'a [u8]>,
    pub(super) user: Option<&'a [u8]>,
    pub(super) name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    /// `None` where there is something else in it, an option twice, or something that was not kept whole: what the server makes of
    /// that depends on its version.
    pub(super) fn of(arguments: &'a Arguments) -> Option<Hello<'a>> {
        let mut hello = Hello { protocol: arguments.get(1), user: None, name: None };
        let mut at = 2;
        while at < arguments.count() {
            let option = HelloOption::at(arguments, at)?;
            let value = match option {
                HelloOption::Auth => &mut hello.user,
                HelloOption::SetName => &mut hello.name,
            };
            let said = arguments.get(at + 1).filter(|_| arguments.is_whole(at + 1))?;
            if value.replace(said).is_some() {
                return None;
            }
            at += option.length();
        }
        (at <= arguments.count().max(2)).then_some(hello)
    }

    /// Whether argument `index` is to be kept, known what comes before it: it is no password, nor behind anything that is no option.
    pub(super) fn keeps(so_far: &Arguments, index: u64) -> bool {
        let mut at = 2;
        while at < index.min(LONGEST) {
            match HelloOption::at(so_far, at) {
                Some(HelloOption::Auth) if index == at + 2 => return false,
                Some(option) => at += option.length(),
                None => return false,
            }
        }
        index < LONGEST
    }
}

enum HelloOption {
    Auth,
    SetName,
}

impl HelloOption {
    fn at(arguments: &Arguments, index: u64) -> Option<HelloOption> {
        let word = until_zero(arguments, index)?;
        match () {
            () if word.eq_ignore_ascii_case(b"auth") => Some(HelloOption::Auth),
            () if word.eq_ignore_ascii_case(b"setname") => Some(HelloOption::SetName),
            () => None,
        }
    }

    /// How many arguments it takes, itself counted.
    fn length(&self) -> u64 {
        match self {
            HelloOption::Auth => 3,
            HelloOption::SetName => 2,
        }
    }
}
