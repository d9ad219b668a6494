//! Entities: small integers that name the items of an arena, and maps whose keys they are.
//!
//! An arena owns its items in one vector, and everything else refers to them by index. Clearing an arena keeps its memory, so that the
//! next shader or program that is built in it allocates nothing.
//!
//! Never: what the items are.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A key of [`PrimaryMap`] and [`SecondaryMap`].
pub trait Entity: Copy + Eq {
    /// The entity with an index. Indices are below `u32::MAX`.
    fn new(index: usize) -> Self;
    /// Its index.
    fn index(self) -> usize;
}

/// Defines entities: `entity! { /// docs  pub struct Inst = "i"; }` makes a type of 32 bits that prints as `i7`.
#[macro_export]
macro_rules! entity {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident = $prefix:literal;)+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(u32);

        impl $crate::entity::Entity for $name {
            fn new(index: usize) -> Self {
                debug_assert!(index < u32::MAX as usize);
                $name(index as u32)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )+ };
}

/// An arena: it owns its items, and pushing one makes its key.
#[derive(Debug, PartialEq, Eq)]
pub struct PrimaryMap<K, V> {
    items: Vec<V>,
    keys: PhantomData<K>,
}

impl<K, V: Clone> Clone for PrimaryMap<K, V> {
    fn clone(&self) -> Self {
        PrimaryMap { items: self.items.clone(), keys: PhantomData }
    }

    fn clone_from(&mut self, other: &Self) {
        self.items.clone_from(&other.items);
    }
}

impl<K, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        PrimaryMap { items: Vec::new(), keys: PhantomData }
    }
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// Adds an item.
    pub fn push(&mut self, item: V) -> K {
        let key = K::new(self.items.len());
        self.items.push(item);
        key
    }

    /// The key that the next [`PrimaryMap::push`] returns.
    pub fn next_key(&self) -> K {
        K::new(self.items.len())
    }

    /// The item of a key that may come from elsewhere.
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Removes all items and keeps the memory.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// All keys, oldest first.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.items.len()).map(K::new)
    }

    /// All items, oldest first.
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }

    /// All items for change, oldest first.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.items.iter_mut()
    }

    /// All keys with their items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(index, item)| (K::new(index), item))
    }
}

impl<K: Entity, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;

    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}

/// What else is known about the items of an arena. Keys that were not set have the default.
#[derive(Debug, Clone)]
pub struct SecondaryMap<K, V> {
    items: Vec<V>,
    default: V,
    keys: PhantomData<K>,
}

impl<K, V: Default + Clone> Default for SecondaryMap<K, V> {
    fn default() -> Self {
        SecondaryMap { items: Vec::new(), default: V::default(), keys: PhantomData }
    }
}

impl<K: Entity, V: Clone> SecondaryMap<K, V> {
    /// An empty map whose keys have a default.
    pub fn with_default(default: V) -> Self {
        SecondaryMap { items: Vec::new(), default, keys: PhantomData }
    }

    /// Sets all keys to the default and makes room for `len` of them.
    pub fn reset(&mut self, len: usize) {
        self.items.clear();
        self.items.resize(len, self.default.clone());
    }
}

impl<K: Entity, V> Index<K> for SecondaryMap<K, V> {
    type Output = V;

    fn index(&self, key: K) -> &V {
        self.items.get(key.index()).unwrap_or(&self.default)
    }
}

impl<K: Entity, V: Clone> IndexMut<K> for SecondaryMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        let index = key.index();
        if index >= self.items.len() {
            self.items.resize(index + 1, self.default.clone());
        }
        &mut self.items[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    entity! {
        /// A key.
        struct Key = "k";
    }

    #[test]
    fn keys_name_items_and_print() {
        let mut map = PrimaryMap::<Key, &str>::default();
        let (a, b) = (map.push("a"), map.push("b"));
        assert_eq!((map[a], map[b], map.len()), ("a", "b", 2));
        assert_eq!(format!("{a} {b:?}"), "k0 k1");
        map.clear();
        assert_eq!((map.get(a), map.next_key()), (None, a));
    }

    #[test]
    fn keys_that_were_not_set_have_the_default() {
        let mut map = SecondaryMap::<Key, u32>::with_default(7);
        map[Key::new(3)] = 1;
        assert_eq!((map[Key::new(0)], map[Key::new(3)], map[Key::new(9)]), (7, 1, 7));
        map.reset(2);
        assert_eq!(map[Key::new(3)], 7);
    }
}
