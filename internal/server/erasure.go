package server

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/credentials/oauth"
	personalvalues "github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/erasure"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/delivery"
	"github.com/luanette/luanette/internal/store/kv"
	"github.com/luanette/luanette/internal/store/personal"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/usage"
)

// personalTables are all tables with rows of people. TestEveryTableIsErased fails when one
// is missing here.
func personalTables() []personal.Table {
	return slices.Concat(job.Personal(), session.Personal(), publish.Personal(), kv.Personal(), results.Personal(), usage.Personal(),
		artifact.Personal(), hootenanny.Personal(),
		conversation.Personal(), delivery.Personal(), spending.Personal(), taskrelay.Personal(), sessionstore.Personal(), upstreamstore.Personal(),
		approval.Personal(), policy.Personal(), pin.Personal(), oauth.Personal(), personalvalues.Personal(),
		share.Personal(), authserver.Personal(), apikey.Personal(), signin.Personal(), people.Personal())
}

// openErasure lets what is stored about people be exported and erased.
func openErasure(ctx context.Context, in *parts) (*erasure.Service, error) {
	if in.people == nil {
		return nil, nil
	}
	parts := []erasure.Part{job.Journals{Queue: in.jobs}, artifact.Erasing{Store: in.contents.Store}}
	if in.audit != nil {
		parts = append(parts, in.audit)
	}
	return erasure.Open(ctx, in.store, erasure.Options{
		People: in.people.Store, Keys: in.keys, Tables: personalTables(), Parts: parts,
		Audit: in.audit.RecordAction, Log: in.log,
	})
}
