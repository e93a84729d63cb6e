//! The result list of one request: its first page comes with the answer, the others when they come into sight.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use skills_discovery::{Answer, Hit};
use skills_skill::SkillId;

/// Results of one page.
pub const PAGE_SIZE: usize = 40;
/// Pages that are kept beside the first one; those farthest from the latest one go.
const MAX_PAGES: usize = 24;

/// What is asked for beside the answer to the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// One page of the list with this number.
    Page {
        /// The list it belongs to.
        list: u64,
        /// From 0.
        page: usize,
    },
    /// The first page with another filter.
    Filter {
        /// The list that it makes.
        list: u64,
        /// The filter text.
        text: String,
    },
    /// One skill, with its place among all results.
    Skill {
        /// The list at the time of asking.
        list: u64,
        /// The skill.
        id: SkillId,
    },
}

/// Results that match the request and the filter, in order.
#[derive(Debug, Default)]
pub struct Listing {
    /// Counts up with every other list: what comes for an older one is dropped.
    number: u64,
    filter: String,
    first: Option<Arc<Answer>>,
    pages: BTreeMap<usize, Arc<Answer>>,
    asked: HashSet<usize>,
    /// Whether another list is on its way.
    pending: bool,
}

impl Listing {
    /// Takes the first page of another list.
    pub fn set(&mut self, first: Option<Arc<Answer>>, filter: &str) {
        self.number += 1;
        self.replace(first, filter);
    }

    fn replace(&mut self, first: Option<Arc<Answer>>, filter: &str) {
        filter.clone_into(&mut self.filter);
        self.first = first;
        self.pages.clear();
        self.asked.clear();
        self.pending = false;
    }

    /// Takes the first page that was asked for by [`Self::next`]; false when another one was asked for since.
    pub fn take_filtered(&mut self, list: u64, filter: &str, answer: &Arc<Answer>) -> bool {
        if list != self.number {
            return false;
        }
        self.replace(Some(Arc::clone(answer)), filter);
        true
    }

    /// The number of the list that is asked for now; the present one stays until it comes.
    pub fn next(&mut self) -> u64 {
        self.number += 1;
        self.pending = true;
        self.number
    }

    /// The list's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The filter that the list was made with.
    #[must_use]
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// The first page.
    #[must_use]
    pub fn first(&self) -> Option<&Arc<Answer>> {
        self.first.as_ref()
    }

    /// How many results there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.first.as_ref().map_or(0, |first| first.results.len() + first.below_limit)
    }

    /// A result, where its page is there.
    #[must_use]
    pub fn hit(&self, place: usize) -> Option<&Hit> {
        let first = self.first.as_ref()?;
        if let Some(hit) = first.results.get(place) {
            return Some(hit);
        }
        self.pages.get(&(place / PAGE_SIZE))?.results.get(place % PAGE_SIZE)
    }

    /// Its place among all results, from 1.
    #[must_use]
    pub fn rank(&self, place: usize) -> Option<usize> {
        if self.filter.trim().is_empty() { Some(place + 1) } else { self.hit(place)?.rank }
    }

    /// Results whose pages are there.
    pub fn hits(&self) -> impl Iterator<Item = &Hit> {
        self.first.iter().chain(self.pages.values()).flat_map(|answer| &answer.results)
    }

    /// The page of a place, where it has to be asked for: each once.
    pub fn missing(&mut self, place: usize) -> Option<usize> {
        let page = place / PAGE_SIZE;
        let absent = !self.pending && place < self.total() && self.hit(place).is_none();
        (absent && self.asked.insert(page)).then_some(page)
    }

    /// Takes a page; false when it belongs to another list.
    pub fn take_page(&mut self, list: u64, page: usize, answer: &Arc<Answer>) -> bool {
        if list != self.number {
            return false;
        }
        self.pages.insert(page, Arc::clone(answer));
        while self.pages.len() > MAX_PAGES {
            let Some(farthest) = self.pages.keys().copied().max_by_key(|kept| kept.abs_diff(page)) else {
                break;
            };
            self.pages.remove(&farthest);
            self.asked.remove(&farthest);
        }
        true
    }
}
