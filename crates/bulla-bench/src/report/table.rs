//! Aligned columns of text.

pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns from the left whose cells begin at one place; those of the others end at one.
    left: usize,
}

impl Table {
    pub(super) fn new(head: &[&str], left: usize) -> Self {
        Table { rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()], left }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub(super) fn print(&self, out: &mut String) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths = (0..columns).map(width).collect::<Vec<_>>();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                match column < self.left {
                    true => line.push_str(&format!("{gap}{cell:<width$}")),
                    false => line.push_str(&format!("{gap}{cell:>width$}")),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// A figure as a cell, empty where there is none.
pub(super) fn cell(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map(show).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "µs"], 1);
        table.row(vec!["a".to_owned(), "1".to_owned()]);
        table.row(vec!["longer".to_owned(), "1,000".to_owned()]);
        let mut out = String::new();
        table.print(&mut out);
        assert_eq!(out, "name       µs\na           1\nlonger  1,000\n");
    }
}
