//! What plots are drawn with: a picture of a few primitives, in colours that show on light and on dark ground.

use std::fmt::Write;

/// Told apart by those who see few colours, too.
pub(super) const COLOURS: [&str; 10] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7fd1", "#a6a200", "#999999",
    "#7a4b2a",
];

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}\
.small{font-size:11px}.axis{stroke:#888;stroke-width:1}.grid{stroke:#8884;stroke-width:1}\
.mark{stroke:#333;stroke-width:2}.line{fill:none;stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.mark{stroke:#ddd}}";

/// Where a text stands beside its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

pub(super) struct Picture {
    width: f64,
    height: f64,
    body: String,
}

impl Picture {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut picture = Picture { width, height, body: String::new() };
        picture.styled(16.0, 24.0, title, Anchor::Start, "title");
        picture
    }

    pub(super) fn text(&mut self, x: f64, y: f64, text: &str, anchor: Anchor) {
        self.styled(x, y, text, anchor, "small");
    }

    fn styled(&mut self, x: f64, y: f64, text: &str, anchor: Anchor, class: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    pub(super) fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str, about: &str) {
        let (width, about) = (width.max(0.5), escaped(about));
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"><title>{about}</title></rect>"#
        );
    }

    /// A line of a class of the style: `axis`, `grid` or `mark`.
    pub(super) fn stroke(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#
        );
    }

    pub(super) fn curve(&mut self, points: impl IntoIterator<Item = (f64, f64)>, colour: &str, dashed: bool) {
        let points = points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
        let dashes = if dashed { r#" stroke-dasharray="5 4""# } else { "" };
        let _ =
            writeln!(self.body, r#"<polyline class="line" stroke="{colour}"{dashes} points="{points}"/>"#);
    }

    /// Names of colours, in a line from `x` on.
    pub(super) fn legend(&mut self, mut x: f64, y: f64, names: &[(&str, &str)]) {
        for (name, colour) in names {
            self.bar(x, y - 9.0, 10.0, 10.0, colour, name);
            self.text(x + 14.0, y, name, Anchor::Start);
            x += 32.0 + 6.5 * name.chars().count() as f64;
        }
    }

    pub(super) fn finish(self) -> String {
        let Picture { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\">\n<style>{STYLE}</style>\n{body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A logarithmic axis that covers some values, in whole powers of ten.
pub(super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    length: f64,
}

impl Scale {
    /// From `start`, `length` long; it may be negative, for an axis that goes up. `None` without a positive value.
    pub(super) fn over(values: impl Iterator<Item = f64> + Clone, start: f64, length: f64) -> Option<Self> {
        let logarithms = values.filter(|value| *value > 0.0 && value.is_finite()).map(f64::log10);
        let from = logarithms.clone().reduce(f64::min)?.floor();
        let to = logarithms.reduce(f64::max)?.ceil().max(from + 1.0);
        Some(Scale { from, to, start, length })
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - self.from) / (self.to - self.from);
        self.start + self.length * share.clamp(0.0, 1.0)
    }

    /// The powers of ten on it.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let powers = std::iter::successors(Some(self.from), |power| Some(power + 1.0));
        powers.take_while(|power| *power <= self.to).map(|power| 10_f64.powf(power)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_puts_powers_of_ten_equally_far_apart() {
        let scale = Scale::over([20.0, 9000.0].into_iter(), 100.0, 300.0).unwrap();
        assert_eq!(scale.ticks(), [10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(
            scale.ticks().into_iter().map(|tick| scale.at(tick)).collect::<Vec<_>>(),
            [100.0, 200.0, 300.0, 400.0]
        );
        assert!(Scale::over([0.0, -1.0].into_iter(), 0.0, 1.0).is_none());
    }
}
