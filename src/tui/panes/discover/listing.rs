//! The result list of a request: its first page comes with the answer, the others are loaded when they become visible.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use skills_discovery::{Answer, Hit};
use skills_skill::SkillId;

/// Number of results per page.
pub const PAGE_SIZE: usize = 40;
/// Maximum number of cached pages after the first; those farthest from the latest one are dropped.
const MAX_PAGES: usize = 24;

/// A request for a part of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Page {
        /// The number of the list.
        list: u64,
        /// Index of the page, from 0.
        page: usize,
    },
    /// The first page with another filter.
    Filter {
        /// The number of the resulting list.
        list: u64,
        /// The filter text.
        text: String,
    },
    /// A skill, with its rank among all results.
    Skill {
        /// The number of the list at the time of the request.
        list: u64,
        id: SkillId,
    },
}

/// Results that match the request and the filter, in order.
#[derive(Debug, Default)]
pub struct Listing {
    /// Incremented with every new list: responses for an older one are dropped.
    number: u64,
    filter: String,
    first: Option<Arc<Answer>>,
    pages: BTreeMap<usize, Arc<Answer>>,
    requested: HashSet<usize>,
    /// Whether a new list has been requested.
    pending: bool,
}

impl Listing {
    /// Sets the first page of a new list.
    pub fn set(&mut self, first: Option<Arc<Answer>>, filter: &str) {
        self.number += 1;
        self.replace(first, filter);
    }

    fn replace(&mut self, first: Option<Arc<Answer>>, filter: &str) {
        filter.clone_into(&mut self.filter);
        self.first = first;
        self.pages.clear();
        self.requested.clear();
        self.pending = false;
    }

    /// Sets the first page that was requested with [`Self::next`]; returns `false` if another one was requested since.
    pub fn take_filtered(&mut self, list: u64, filter: &str, answer: &Arc<Answer>) -> bool {
        if list != self.number {
            return false;
        }
        self.replace(Some(Arc::clone(answer)), filter);
        true
    }

    /// Returns the number of a list that is requested now; the current one stays until it arrives.
    pub fn next(&mut self) -> u64 {
        self.number += 1;
        self.pending = true;
        self.number
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Returns the first page.
    pub fn first(&self) -> Option<&Arc<Answer>> {
        self.first.as_ref()
    }

    /// Returns the number of results: at most that of a large catalog, whatever a service states.
    pub fn total(&self) -> usize {
        const LARGEST: usize = 1_000_000;
        self.first
            .as_ref()
            .map_or(0, |first| first.results.len().saturating_add(first.below_limit).min(LARGEST))
    }

    /// Returns a result if its page is loaded.
    pub fn hit(&self, place: usize) -> Option<&Hit> {
        let first = self.first.as_ref()?;
        if let Some(hit) = first.results.get(place) {
            return Some(hit);
        }
        self.pages.get(&(place / PAGE_SIZE))?.results.get(place % PAGE_SIZE)
    }

    /// Returns the rank of a result among all, from 1.
    pub fn rank(&self, place: usize) -> Option<usize> {
        if self.filter.trim().is_empty() { Some(place + 1) } else { self.hit(place)?.rank }
    }

    /// Returns the results whose pages are loaded.
    pub fn hits(&self) -> impl Iterator<Item = &Hit> {
        self.first.iter().chain(self.pages.values()).flat_map(|answer| &answer.results)
    }

    /// Returns the page of a result if it has to be requested; each page once.
    pub fn missing(&mut self, place: usize) -> Option<usize> {
        let page = place / PAGE_SIZE;
        let absent = !self.pending && place < self.total() && self.hit(place).is_none();
        (absent && self.requested.insert(page)).then_some(page)
    }

    /// Stores a page; returns `false` if it belongs to another list.
    pub fn take_page(&mut self, list: u64, page: usize, answer: &Arc<Answer>) -> bool {
        if list != self.number {
            return false;
        }
        self.pages.insert(page, Arc::clone(answer));
        while self.pages.len() > MAX_PAGES {
            let Some(farthest) = self.pages.keys().copied().max_by_key(|loaded| loaded.abs_diff(page)) else {
                break;
            };
            self.pages.remove(&farthest);
            self.requested.remove(&farthest);
        }
        true
    }
}
