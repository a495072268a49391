//! The content of a file that is held in memory.

use std::io;

/// Copies what the file has at `offset` into `buffer`; 0 at the end.
pub(super) fn read(content: &[u8], buffer: &mut [u8], offset: u64) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| content.get(offset..)).unwrap_or_default();
    let count = rest.len().min(buffer.len());
    buffer[..count].copy_from_slice(&rest[..count]);
    count
}

/// Writes `data` at `offset`, with zeros before it where the file was shorter. Writing nothing changes nothing.
pub(super) fn write(content: &mut Vec<u8>, offset: u64, data: &[u8]) -> io::Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let end = end(offset, data.len())?;
    if end > content.len() as u64 {
        set_length(content, end)?;
    }
    let end = position(end)?;
    content[end - data.len()..end].copy_from_slice(data);
    Ok(())
}

/// Cuts the file, or extends it with zeros.
pub(super) fn set_length(content: &mut Vec<u8>, length: u64) -> io::Result<()> {
    let length = position(length)?;
    content.try_reserve(length.saturating_sub(content.len()))?;
    content.resize(length, 0);
    Ok(())
}

/// Where `length` bytes at `offset` end.
pub(super) fn end(offset: u64, length: usize) -> io::Result<u64> {
    offset.checked_add(length as u64).ok_or_else(too_large)
}

fn position(position: u64) -> io::Result<usize> {
    usize::try_from(position).map_err(|_| too_large())
}

fn too_large() -> io::Error {
    io::ErrorKind::FileTooLarge.into()
}
