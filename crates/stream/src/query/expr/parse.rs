//! The grammar of conditions: precedence climbing over [`Tokens`].
//!
//! Binds tighter from left to right: `||`, `&&`, comparisons (which do not chain), `|`, `&`, then `!`, `~` and `-`.

use super::token::{Token, Tokens, Word};
use super::{Binary, ExprError, ExprNode, Mistake, Node};

/// Parentheses and prefixes inside one another.
const MAX_DEPTH: u32 = 64;
/// Numbers, names and operators of one condition.
const MAX_NODES: usize = 4096;

pub(super) struct Parser<'t> {
    text: &'t str,
    tokens: Tokens<'t>,
    /// The next word.
    ahead: Token,
    nodes: Vec<Node>,
    depth: u32,
}

/// The nodes of a condition, operands before what uses them; the last one is the whole.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, ExprError> {
    let mut tokens = Tokens::new(text);
    let ahead = tokens.next()?;
    let mut parser = Parser { text, tokens, ahead, nodes: Vec::new(), depth: 0 };
    parser.binary(0)?;
    match parser.ahead.what {
        Word::End => Ok(parser.nodes),
        Word::Sign(")") => Err(parser.here(Mistake::Unopened)),
        _ => Err(parser.here(Mistake::Operator)),
    }
}

fn operator(word: Word) -> Option<(Binary, u32)> {
    let Word::Sign(sign) = word else { return None };
    Some(match sign {
        "||" => (Binary::Or, 1),
        "&&" => (Binary::And, 2),
        "==" => (Binary::Equal, COMPARISON),
        "!=" => (Binary::NotEqual, COMPARISON),
        "<" => (Binary::Less, COMPARISON),
        "<=" => (Binary::LessEqual, COMPARISON),
        ">" => (Binary::Greater, COMPARISON),
        ">=" => (Binary::GreaterEqual, COMPARISON),
        "|" => (Binary::BitOr, 4),
        "&" => (Binary::BitAnd, 5),
        _ => return None,
    })
}

const COMPARISON: u32 = 3;

impl Parser<'_> {
    fn here(&self, mistake: Mistake) -> ExprError {
        ExprError::new(mistake, self.ahead.start, self.ahead.end)
    }

    fn advance(&mut self) -> Result<Token, ExprError> {
        let next = self.tokens.next()?;
        Ok(std::mem::replace(&mut self.ahead, next))
    }

    fn push(&mut self, what: ExprNode, start: usize, end: usize) -> Result<usize, ExprError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(ExprError::new(Mistake::TooLong, start, end));
        }
        self.nodes.push(Node { what, start, end });
        Ok(self.nodes.len() - 1)
    }

    fn start_of(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(0, |node| node.start)
    }

    fn end_of(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(0, |node| node.end)
    }

    /// Operators that bind tighter than `least`, and their operands.
    fn binary(&mut self, least: u32) -> Result<usize, ExprError> {
        let mut left = self.prefixed()?;
        while let Some((op, power)) = operator(self.ahead.what).filter(|&(_, power)| power > least) {
            self.advance()?;
            let right = self.binary(power)?;
            left = self.push(ExprNode::Binary(op, left, right), self.start_of(left), self.end_of(right))?;
            if power == COMPARISON && operator(self.ahead.what).is_some_and(|(_, next)| next == COMPARISON) {
                return Err(self.here(Mistake::Chained));
            }
        }
        Ok(left)
    }

    fn prefixed(&mut self) -> Result<usize, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.here(Mistake::TooDeep));
        }
        let token = self.ahead;
        let node = match token.what {
            Word::Sign("!") => self.unary(ExprNode::Not)?,
            Word::Sign("~") => self.unary(ExprNode::Complement)?,
            Word::Sign("-") => {
                self.advance()?;
                let number = self.advance()?;
                let what = match number.what {
                    Word::Int(n) => ExprNode::Int(-i128::from(n)),
                    Word::Float(f) => ExprNode::Float(-f),
                    _ => return Err(ExprError::new(Mistake::Minus, token.start, number.end)),
                };
                self.push(what, token.start, number.end)?
            }
            Word::Sign("(") => {
                self.advance()?;
                let inside = self.binary(0)?;
                match self.ahead.what {
                    Word::Sign(")") => self.advance()?,
                    Word::End => return Err(ExprError::new(Mistake::Unclosed, token.start, token.end)),
                    _ => return Err(self.here(Mistake::Operator)),
                };
                inside
            }
            Word::Int(n) => {
                self.advance()?;
                self.push(ExprNode::Int(n.into()), token.start, token.end)?
            }
            Word::Float(f) => {
                self.advance()?;
                self.push(ExprNode::Float(f), token.start, token.end)?
            }
            Word::Name => {
                self.advance()?;
                if self.text.get(token.start..token.end).is_some_and(|name| name.contains(['*', '?'])) {
                    return Err(ExprError::new(Mistake::Pattern, token.start, token.end));
                }
                self.push(ExprNode::Name, token.start, token.end)?
            }
            Word::Sign(_) | Word::End => return Err(self.here(Mistake::Operand)),
        };
        self.depth -= 1;
        Ok(node)
    }

    fn unary(&mut self, what: fn(usize) -> ExprNode) -> Result<usize, ExprError> {
        let sign = self.advance()?;
        let operand = self.prefixed()?;
        self.push(what(operand), sign.start, self.end_of(operand))
    }
}
