//! Texts to choose from, one after the other in memory.

use crate::random::{Random, index_below};
use std::collections::HashSet;

#[derive(Debug)]
pub(crate) struct Pool {
    text: String,
    /// Where each text begins, and where the last ends.
    bounds: Vec<usize>,
}

impl Pool {
    /// So many different texts, by a function that draws one.
    pub(crate) fn draw(
        count: u32,
        random: &mut Random,
        mut draw: impl FnMut(u32, &mut Random) -> String,
    ) -> Self {
        let mut known = HashSet::new();
        Pool::collect((0..count).map(|number| {
            loop {
                let text = draw(number, random);
                if known.insert(text.clone()) {
                    return text;
                }
            }
        }))
    }

    pub(crate) fn collect(texts: impl Iterator<Item = String>) -> Self {
        let mut pool = Pool { text: String::new(), bounds: vec![0] };
        for text in texts {
            pool.text.push_str(&text);
            pool.bounds.push(pool.text.len());
        }
        pool
    }

    pub(crate) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &str {
        &self.text[self.bounds[index]..self.bounds[index + 1]]
    }

    /// The text that 32 random bits choose.
    #[inline]
    pub(crate) fn choose(&self, random: u32) -> &str {
        self.get(index_below(random, self.len()))
    }
}
