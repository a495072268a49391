mod access;
mod document;
mod json;
mod others;
mod properties;

use super::{Format, FormatOptions, Parsed, Parser};
use crate::Refusal;

/// The members of a record, as JSON.
fn json(format: Format, record: impl AsRef<[u8]>) -> String {
    let mut parser = Parser::new(format, &FormatOptions::default());
    match parser.parse(record.as_ref()) {
        Ok(Parsed::Fields(fields)) => {
            let mut json = Vec::new();
            fields.write_json(&mut json);
            String::from_utf8(json).unwrap()
        }
        Ok(Parsed::Header) => "header".to_owned(),
        Err(reason) => panic!("{reason}"),
    }
}

fn refused(format: Format, record: impl AsRef<[u8]>) -> Refusal {
    Parser::new(format, &FormatOptions::default()).parse(record.as_ref()).unwrap_err()
}

#[test]
fn formats_are_asked_for_by_their_names() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        assert!(format.description().len() < 60 && format.to_string() == format.name());
    }
    let unknown = "combinde".parse::<Format>().unwrap_err().to_string();
    assert!(unknown.starts_with("not a format; the formats are raw, json, combined, common, "), "{unknown}");
}
