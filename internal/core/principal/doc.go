// Package principal identifies the caller of a request: a Principal is put into the
// context by the endpoint that authenticates. It also has the scopes, and the type of a
// route with the scope it needs.
package principal
