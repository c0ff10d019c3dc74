// Package story derives what is going on in a group from its status: one derivation for lists,
// problems and explanations, which only render it. It reads no text and knows no rule.
package story
