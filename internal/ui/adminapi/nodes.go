package adminapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/cluster/node"
)

// Nodes are the servers that share a database.
type Nodes struct {
	Node  string      `json:"node"` // id of the node that answers
	Nodes []node.Info `json:"nodes"`
}

func (s *Server) listNodes(r *http.Request) (any, error) { return s.options.Nodes(r.Context()) }
