package adminapi

import (
	"context"
	"net/http"
)

// Learned is what searches have learned from calls.
type Learned interface {
	// Forget erases what was learned from the caller, and returns how much that was.
	Forget(ctx context.Context) (int64, error)
	// Erase erases what was learned from all.
	Erase(ctx context.Context) (int64, error)
}

// forgotten is the response: how many words of tools were erased.
type forgotten struct {
	Forgotten int64 `json:"forgotten"`
}

func (s *Server) forgetOwn(r *http.Request) (any, error) {
	count, err := s.options.Learned.Forget(r.Context())
	return forgotten{count}, err
}

func (s *Server) forgetAll(r *http.Request) (any, error) {
	count, err := s.options.Learned.Erase(r.Context())
	return forgotten{count}, err
}
