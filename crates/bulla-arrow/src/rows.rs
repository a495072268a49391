//! Arrays as entries to append.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_schema::{DataType, Schema, TimeUnit};
use bulla::text::LineError;
use bulla::{Entry, Error, Result};

/// The rows of a record batch, which are entries: the columns are those of [`schema`](crate::schema) or some of them, in any
/// order, and of any type that has the same values.
///
/// | Column | Types |
/// |---|---|
/// | `operation`, `controller`, `processor`, `purpose`, `actor`, `client`, `stream` | texts, plain or as a dictionary |
/// | `location`, `payload` | the same, or binary; `location_bytes`, `payload_bytes` where these have none |
/// | `subject` | texts, or lists of texts |
/// | `time` | timestamps with a time zone, or whole nanoseconds since the Unix epoch; `time_nanoseconds`, if there is one, goes before |
/// | `duration` | durations, or whole nanoseconds; `duration_digits` where it has none |
/// | `status`, `size`, `flags` | integers; `size_digits` where it has none |
///
/// `entry` and `withheld`, which a query gives, say nothing of an entry that is appended, and are passed over.
pub struct Rows<'a> {
    batch: &'a RecordBatch,
    first: usize,
}

impl<'a> Rows<'a> {
    /// The rows of `batch`, which are those of a table from row `first` on.
    pub fn new(batch: &'a RecordBatch, first: usize) -> Self {
        Rows { batch, first }
    }

    /// The entries, which borrow from the batch. What they have is not held against the limits of an entry: appending does that.
    ///
    /// # Errors
    /// `Invalid` where a column is none of these, has another type, or a value that its field cannot have; it is named, and the row by its
    /// place in the table.
    pub fn entries(&self) -> Result<Vec<Entry<'a>>> {
        let mut entries = vec![Entry::default(); self.batch.num_rows()];
        let schema = self.batch.schema_ref();
        let mut is_named = false;
        for (field, array) in schema.fields().iter().zip(self.batch.columns()) {
            let column = Column { name: field.name(), array: &**array, first: self.first };
            is_named |= column.name == "operation";
            column.fill(&mut entries)?;
        }
        // By now all of them are known.
        if let Some(twice) = twice(schema) {
            return Err(Error::invalid(format!("the table has two columns `{twice}`")));
        }
        // What goes before comes last.
        for (field, array) in schema.fields().iter().zip(self.batch.columns()) {
            Column { name: field.name(), array: &**array, first: self.first }.fill_further(&mut entries)?;
        }
        match is_named || entries.is_empty() {
            true => Ok(entries),
            false => Err(Error::invalid("the table has no column `operation`, which every entry has")),
        }
    }
}

/// A column, by its name.
struct Column<'a, 'n> {
    name: &'n str,
    array: &'a dyn Array,
    /// The first row's place in the table.
    first: usize,
}

impl<'a> Column<'a, '_> {
    fn fill(&self, entries: &mut [Entry<'a>]) -> Result<()> {
        match self.name {
            "operation" => {
                self.texts(entries, "texts", |entry, text| entry.operation = text.unwrap_or_default())
            }
            "controller" => self.texts(entries, "texts", |entry, text| entry.controller = text),
            "processor" => self.texts(entries, "texts", |entry, text| entry.processor = text),
            "purpose" => self.texts(entries, "texts", |entry, text| entry.purpose = text),
            "actor" => self.texts(entries, "texts", |entry, text| entry.actor = text),
            "client" => self.texts(entries, "texts", |entry, text| entry.client = text),
            "stream" => self.texts(entries, "texts", |entry, text| entry.stream = text),
            "location" => self.bytes(entries, |entry, bytes| entry.location = bytes),
            "payload" => self.bytes(entries, |entry, bytes| entry.payload = bytes),
            "subject" => self.subjects(entries),
            "time" => self.times(entries),
            "duration" => self.durations(entries),
            "status" => {
                self.numbers(entries, u64::from(u32::MAX), |entry, number| entry.status = narrow(number))
            }
            "flags" => {
                self.numbers(entries, u64::from(u32::MAX), |entry, number| entry.flags = narrow(number))
            }
            "size" => self.numbers(entries, u64::MAX, |entry, number| entry.size = number),
            "time_nanoseconds" | "location_bytes" | "payload_bytes" | "duration_digits" | "size_digits" => {
                Ok(())
            }
            "entry" | "withheld" => Ok(()),
            other => Err(Error::invalid(LineError::unknown_field(other).to_string())),
        }
    }

    /// What says more than another column.
    fn fill_further(&self, entries: &mut [Entry<'a>]) -> Result<()> {
        match self.name {
            "time_nanoseconds" => self.signed(entries, |entry, time| entry.time = time.or(entry.time)),
            "location_bytes" => self.bytes(entries, |entry, bytes| entry.location = entry.location.or(bytes)),
            "payload_bytes" => self.bytes(entries, |entry, bytes| entry.payload = entry.payload.or(bytes)),
            "duration_digits" => {
                self.digits(entries, |entry, number| entry.duration = entry.duration.or(number))
            }
            "size_digits" => self.digits(entries, |entry, number| entry.size = entry.size.or(number)),
            _ => Ok(()),
        }
    }

    fn texts(
        &self,
        entries: &mut [Entry<'a>],
        what: &str,
        set: impl Fn(&mut Entry<'a>, Option<&'a str>),
    ) -> Result<()> {
        let texts = Texts::of(self.array).ok_or_else(|| self.unfit(what))?;
        entries.iter_mut().enumerate().for_each(|(row, entry)| set(entry, texts.get(row)));
        Ok(())
    }

    fn bytes(&self, entries: &mut [Entry<'a>], set: impl Fn(&mut Entry<'a>, Option<&'a [u8]>)) -> Result<()> {
        let array = self.array;
        macro_rules! filled {
            ($type:ty) => {
                if let Some(array) = array.as_any().downcast_ref::<$type>() {
                    entries.iter_mut().zip(array).for_each(|(entry, bytes)| set(entry, bytes));
                    return Ok(());
                }
            };
        }
        filled!(BinaryArray);
        filled!(LargeBinaryArray);
        filled!(BinaryViewArray);
        self.texts(entries, "texts or binary", |entry, text| set(entry, text.map(str::as_bytes)))
    }

    fn subjects(&self, entries: &mut [Entry<'a>]) -> Result<()> {
        let unfit = || self.unfit("texts, or lists of texts");
        let (values, ends): (_, Vec<usize>) = match self.array.data_type() {
            DataType::List(_) => {
                let list = self.array.as_list::<i32>();
                (list.values(), list.offsets().iter().map(|&end| index(i64::from(end))).collect())
            }
            DataType::LargeList(_) => {
                let list = self.array.as_list::<i64>();
                (list.values(), list.offsets().iter().map(|&end| index(end)).collect())
            }
            _ => {
                let texts = Texts::of(self.array).ok_or_else(unfit)?;
                for (row, entry) in entries.iter_mut().enumerate() {
                    entry.subjects = texts.get(row).map(|name| [name].into_iter().collect());
                }
                return Ok(());
            }
        };
        let names = Texts::of(&**values).ok_or_else(unfit)?;
        for (row, entry) in entries.iter_mut().enumerate().filter(|(row, _)| self.array.is_valid(*row)) {
            let subjects = entry.subjects.get_or_insert_default();
            for name in ends[row]..ends[row + 1] {
                subjects.push(names.get(name).ok_or_else(|| self.value(row, "a list without nulls"))?);
            }
        }
        Ok(())
    }

    fn times(&self, entries: &mut [Entry<'a>]) -> Result<()> {
        let (unit, factor) = match self.array.data_type() {
            DataType::Timestamp(unit, Some(_)) => (unit, nanoseconds(*unit)),
            DataType::Timestamp(_, None) => {
                let message = "column `time` has no time zone, so nobody can tell what its times are: give it one, such as UTC";
                return Err(Error::invalid(message));
            }
            _ => return self.signed(entries, |entry, time| entry.time = time),
        };
        let set = |entry: &mut Entry<'a>, time| entry.time = time;
        match unit {
            TimeUnit::Second => self.scaled::<TimestampSecondType>(entries, factor, set),
            TimeUnit::Millisecond => self.scaled::<TimestampMillisecondType>(entries, factor, set),
            TimeUnit::Microsecond => self.scaled::<TimestampMicrosecondType>(entries, factor, set),
            TimeUnit::Nanosecond => self.scaled::<TimestampNanosecondType>(entries, factor, set),
        }
    }

    fn durations(&self, entries: &mut [Entry<'a>]) -> Result<()> {
        let DataType::Duration(unit) = self.array.data_type() else {
            return self.numbers(entries, u64::MAX, |entry, number| entry.duration = number);
        };
        let (unit, factor) = (*unit, nanoseconds(*unit));
        let is_negative =
            |entry: &Entry<'_>| entry.duration.is_some_and(|duration| duration > i64::MAX as u64);
        let set = |entry: &mut Entry<'a>, duration: Option<i64>| {
            entry.duration = duration.map(i64::cast_unsigned);
        };
        match unit {
            TimeUnit::Second => self.scaled::<DurationSecondType>(entries, factor, set),
            TimeUnit::Millisecond => self.scaled::<DurationMillisecondType>(entries, factor, set),
            TimeUnit::Microsecond => self.scaled::<DurationMicrosecondType>(entries, factor, set),
            TimeUnit::Nanosecond => self.scaled::<DurationNanosecondType>(entries, factor, set),
        }?;
        match entries.iter().position(is_negative) {
            None => Ok(()),
            Some(row) => Err(self.value(row, "a duration that is not negative")),
        }
    }

    /// Values of a unit that has so many nanoseconds.
    fn scaled<T: ArrowPrimitiveType<Native = i64>>(
        &self,
        entries: &mut [Entry<'a>],
        factor: i64,
        set: impl Fn(&mut Entry<'a>, Option<i64>),
    ) -> Result<()> {
        let values = self.array.as_primitive::<T>();
        for (row, (entry, value)) in entries.iter_mut().zip(values).enumerate() {
            let scaled = value.map(|value| value.checked_mul(factor)).map(|scaled| {
                scaled.ok_or_else(|| self.value(row, "within what 64 bits have of nanoseconds"))
            });
            set(entry, scaled.transpose()?);
        }
        Ok(())
    }

    fn signed(&self, entries: &mut [Entry<'a>], set: impl Fn(&mut Entry<'a>, Option<i64>)) -> Result<()> {
        self.integers(entries, "timestamps with a time zone, or integers", |row, entry, number| {
            let number = number.map(i64::try_from).transpose();
            set(entry, number.map_err(|_| self.value(row, "a signed number of 64 bits"))?);
            Ok(())
        })
    }

    fn numbers(
        &self,
        entries: &mut [Entry<'a>],
        most: u64,
        set: impl Fn(&mut Entry<'a>, Option<u64>),
    ) -> Result<()> {
        self.integers(entries, "integers", |row, entry, number| {
            let fits = |number: i128| u64::try_from(number).ok().filter(|number| *number <= most);
            let number = number.map(|number| {
                fits(number).ok_or_else(|| self.value(row, &format!("a whole number from 0 to {most}")))
            });
            set(entry, number.transpose()?);
            Ok(())
        })
    }

    fn digits(&self, entries: &mut [Entry<'a>], set: impl Fn(&mut Entry<'a>, Option<u64>)) -> Result<()> {
        let texts = Texts::of(self.array).ok_or_else(|| self.unfit("texts"))?;
        for (row, entry) in entries.iter_mut().enumerate() {
            let number = texts.get(row).map(str::parse::<u64>).transpose();
            set(entry, number.map_err(|_| self.value(row, "digits of a number of 64 bits"))?);
        }
        Ok(())
    }

    fn integers(
        &self,
        entries: &mut [Entry<'a>],
        what: &str,
        mut set: impl FnMut(usize, &mut Entry<'a>, Option<i128>) -> Result<()>,
    ) -> Result<()> {
        macro_rules! each {
            ($type:ty) => {{
                let values = self.array.as_primitive::<$type>();
                let mut rows = entries.iter_mut().zip(values).enumerate();
                rows.try_for_each(|(row, (entry, value))| set(row, entry, value.map(i128::from)))
            }};
        }
        match self.array.data_type() {
            DataType::Null => Ok(()),
            DataType::Int8 => each!(Int8Type),
            DataType::Int16 => each!(Int16Type),
            DataType::Int32 => each!(Int32Type),
            DataType::Int64 => each!(Int64Type),
            DataType::UInt8 => each!(UInt8Type),
            DataType::UInt16 => each!(UInt16Type),
            DataType::UInt32 => each!(UInt32Type),
            DataType::UInt64 => each!(UInt64Type),
            _ => Err(self.unfit(what)),
        }
    }

    fn unfit(&self, what: &str) -> Error {
        Error::invalid(format!(
            "column `{}` has to have {what}, and has {}",
            self.name,
            self.array.data_type()
        ))
    }

    fn value(&self, row: usize, what: &str) -> Error {
        Error::invalid(format!("column `{}`, row {}: it has to be {what}", self.name, self.first + row))
    }
}

/// Texts of any type.
enum Texts<'a> {
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
    /// The place of each in a list of them; what is null has one, too.
    Dictionary(&'a dyn Array, Vec<usize>, Box<Texts<'a>>),
    Null,
}

impl<'a> Texts<'a> {
    fn of(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Null => Texts::Null,
            DataType::Utf8 => Texts::Small(array.as_string()),
            DataType::LargeUtf8 => Texts::Large(array.as_string()),
            DataType::Utf8View => Texts::View(array.as_string_view()),
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary_opt()?;
                if dictionary.values().is_empty() {
                    return Some(Texts::Null);
                }
                let values = Texts::of(&**dictionary.values())?;
                Texts::Dictionary(array, dictionary.normalized_keys(), values.into())
            }
            _ => return None,
        })
    }

    fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Texts::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::View(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Dictionary(array, keys, values) => {
                array.is_valid(row).then(|| values.get(keys[row])).flatten()
            }
            Texts::Null => None,
        }
    }
}

/// The name of a column that there is twice.
fn twice(schema: &Schema) -> Option<&str> {
    let mut names = schema.fields().iter().map(|field| &field.name()[..]).collect::<Vec<_>>();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

fn narrow(number: Option<u64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// An offset, which Arrow's own checks hold to be none below 0.
fn index(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or_default()
}

fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

#[cfg(test)]
mod tests;
