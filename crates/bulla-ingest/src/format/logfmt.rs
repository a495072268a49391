use super::scan::{hexadecimal, quoted_length};
use crate::framing::find;
use crate::value::Members;
use crate::{Refusal, Value};
use std::borrow::Cow;

/// `name=value` pairs with spaces between them; a value between double quotes has the escapes of Go's `strconv.Quote`.
pub(super) fn parse(record: &[u8]) -> Result<Value<'_>, Refusal> {
    let mut members = Members::default();
    let (mut rest, mut has_value) = (record, false);
    loop {
        let blank = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = &rest[blank..];
        if rest.is_empty() {
            break;
        }
        let place = record.len() - rest.len();
        let end = rest.iter().position(|&byte| byte == b'=' || is_blank(byte)).unwrap_or(rest.len());
        let name =
            std::str::from_utf8(&rest[..end]).map_err(|_| Refusal::at("a name is not UTF-8", place))?;
        let is_name = !name.is_empty() && !name.contains('"');
        if !is_name {
            return Err(Refusal::at("there is no name", place));
        }
        rest = &rest[end..];
        let value = match rest.strip_prefix(b"=") {
            None => Value::Null,
            Some(behind) => {
                has_value = true;
                let value;
                (value, rest) = read_value(behind).map_err(|reason| Refusal::at(reason, place))?;
                value
            }
        };
        members.add_repeated(Cow::Borrowed(name), value);
    }
    if !has_value {
        return Err(Refusal::new("there is no `name=value`"));
    }
    Ok(members.into_object())
}

fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

fn read_value(bytes: &[u8]) -> Result<(Value<'_>, &[u8]), &'static str> {
    let Some(open) = bytes.strip_prefix(b"\"") else {
        let end = bytes.iter().position(|&byte| is_blank(byte)).unwrap_or(bytes.len());
        return Ok((Value::from_bytes(&bytes[..end]), &bytes[end..]));
    };
    let end = quoted_length(open).ok_or("there is no closing quote behind the name that begins")?;
    let rest = &open[end + 1..];
    if rest.first().is_some_and(|&byte| !is_blank(byte)) {
        return Err("there is no space behind the quoted value whose name begins");
    }
    Ok((unquote(&open[..end]).ok_or("there is an unknown escape in the value whose name begins")?, rest))
}

/// What stands between the quotes, its escapes resolved.
fn unquote(inside: &[u8]) -> Option<Value<'_>> {
    if find(b'\\', inside).is_none() {
        return Some(Value::from_bytes(inside));
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(place) = find(b'\\', rest) {
        out.extend_from_slice(&rest[..place]);
        let (&escape, behind) = rest[place + 1..].split_first()?;
        rest = behind;
        match escape {
            b'"' | b'\\' | b'/' | b'\'' => out.push(escape),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'x' => out.push(u8::try_from(code(&mut rest, 2)?).ok()?),
            b'u' => character(utf_16(&mut rest)?, &mut out)?,
            b'U' => character(code(&mut rest, 8)?, &mut out)?,
            _ => return None,
        }
    }
    out.extend_from_slice(rest);
    Some(Value::from_vec(out))
}

/// Four hexadecimal digits, or two times four with `\u` between them: what JSON has for a character beyond 65535.
fn utf_16(rest: &mut &[u8]) -> Option<u32> {
    let high = code(rest, 4)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some(high);
    }
    *rest = rest.strip_prefix(b"\\u")?;
    let low = code(rest, 4)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some(0x1_0000 + ((high - 0xd800) << 10) + low)
}

fn character(code: u32, out: &mut Vec<u8>) -> Option<()> {
    let character = char::from_u32(code)?;
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}

/// So many hexadecimal digits.
fn code(rest: &mut &[u8], digits: usize) -> Option<u32> {
    let (number, behind) = rest.split_at_checked(digits)?;
    *rest = behind;
    number.iter().try_fold(0, |sum: u32, &byte| Some(sum.checked_mul(16)? + u32::from(hexadecimal(byte)?)))
}
