package adminapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/cluster/node"
)

// Nodes are the servers that share a database.
type Nodes struct {
	Node  string      `json:"node"` // the one that answers, by its id
	Nodes []node.Info `json:"nodes"`
}

func (d *Server) listNodes(r *http.Request) (any, error) { return d.options.Nodes(r.Context()) }
