package chatapi

import (
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/core/principal"
)

// The actions of the audit log. Their subject is whose it was, and the conversation.
const (
	auditRead         = "conversation.read"
	auditCopy         = "conversation.copy"
	auditDelete       = "conversation.delete"
	auditReadMemory   = "memory.read"
	auditDeleteMemory = "memory.delete"
)

// maxAudited is how many bytes of a conversation's name are recorded.
const maxAudited = 200

// audit records that a caller who is not that person reads, copies or deletes what the person said
// to the agent, or what the agent remembers of it: keys of chat programs and of administrators, and
// those with whom it is shared.
func (d *Handler) audit(r *http.Request, action string, p conversation.Person, id string) {
	who := principal.Of(r.Context())
	if d.options.Audit == nil || who.ID == principal.LocalID || who.User == p.User {
		return
	}
	subject := strings.TrimSpace(p.String() + " " + id[:min(len(id), maxAudited)])
	d.options.Audit(r.Context(), action, strings.ToValidUTF8(subject, ""), nil)
}
