//! A list of small items that needs no memory of its own while it is short.
//!
//! Never: items that need to be dropped.

use std::ops::{Deref, DerefMut};

/// A list of up to `N` items in place; a longer one is on the heap.
#[derive(Debug, Clone)]
pub struct InlineList<T, const N: usize> {
    items: [T; N],
    len: usize,
    /// All items, if they are more than `N`.
    heap: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Default for InlineList<T, N> {
    fn default() -> Self {
        InlineList { items: [T::default(); N], len: 0, heap: Vec::new() }
    }
}

impl<T: Copy + Default, const N: usize> InlineList<T, N> {
    /// An empty list.
    pub fn new() -> Self {
        InlineList::default()
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if let Some(place) = self.items.get_mut(self.len) {
            *place = item;
        } else {
            if self.len == N {
                self.heap.extend_from_slice(&self.items);
            }
            self.heap.push(item);
        }
        self.len += 1;
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.len = 0;
        self.heap.clear();
    }
}

impl<T, const N: usize> Deref for InlineList<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.len > N { &self.heap } else { &self.items[..self.len] }
    }
}

impl<T, const N: usize> DerefMut for InlineList<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len > N { &mut self.heap } else { &mut self.items[..self.len] }
    }
}

impl<T: Copy + Default, const N: usize> Extend<T> for InlineList<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for InlineList<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = InlineList::default();
        list.extend(items);
        list
    }
}

impl<T: Copy + Default, const N: usize> From<&[T]> for InlineList<T, N> {
    fn from(items: &[T]) -> Self {
        let mut list = InlineList { len: items.len(), ..InlineList::default() };
        match list.items.get_mut(..items.len()) {
            Some(places) => places.copy_from_slice(items),
            None => list.heap.extend_from_slice(items),
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_the_same_in_place_and_on_the_heap() {
        let mut list = InlineList::<u32, 3>::new();
        for count in 0..10u32 {
            let items: Vec<_> = (0..count).collect();
            assert_eq!(*list, *items);
            let mut copied = InlineList::<u32, 3>::from(&items[..]);
            copied.push(count);
            assert_eq!((&copied[..copied.len() - 1], copied.last()), (&items[..], Some(&count)));
            list.push(count);
        }
        list[9] = 7;
        assert_eq!((list.last(), list.len()), (Some(&7), 10));
        list.clear();
        list.push(5);
        assert_eq!(*list, [5]);
    }
}
