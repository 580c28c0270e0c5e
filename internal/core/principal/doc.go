// Package principal knows who asks: a Principal travels in the context from the door
// on. It says what the doors let through, and for whom: the scopes there are, and
// the routes that need them.
package principal
