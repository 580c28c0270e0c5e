package wire

// Methods of MCP, both eras.
const (
	MethodInitialize = "initialize" // legacy
	MethodPing       = "ping"       // legacy
	MethodDiscover   = "server/discover"
	MethodListen     = "subscriptions/listen"

	MethodToolsList         = "tools/list"
	MethodToolsCall         = "tools/call"
	MethodPromptsList       = "prompts/list"
	MethodPromptsGet        = "prompts/get"
	MethodResourcesList     = "resources/list"
	MethodResourceTemplates = "resources/templates/list"
	MethodResourcesRead     = "resources/read"
	MethodSubscribe         = "resources/subscribe"   // legacy
	MethodUnsubscribe       = "resources/unsubscribe" // legacy
	MethodComplete          = "completion/complete"
	MethodSetLevel          = "logging/setLevel" // legacy

	MethodTasksGet    = "tasks/get"
	MethodTasksCancel = "tasks/cancel"
	MethodTasksUpdate = "tasks/update" // modern
	MethodTasksList   = "tasks/list"   // legacy
	MethodTasksResult = "tasks/result" // legacy

	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"

	NoteInitialized         = "notifications/initialized"
	NoteCancelled           = "notifications/cancelled"
	NoteProgress            = "notifications/progress"
	NoteMessage             = "notifications/message"
	NoteToolsChanged        = "notifications/tools/list_changed"
	NotePromptsChanged      = "notifications/prompts/list_changed"
	NoteResourcesChanged    = "notifications/resources/list_changed"
	NoteResourceUpdated     = "notifications/resources/updated"
	NoteTask                = "notifications/tasks"        // modern
	NoteTaskStatus          = "notifications/tasks/status" // legacy
	NoteRootsChanged        = "notifications/roots/list_changed"
	NoteElicitationComplete = "notifications/elicitation/complete"
	NoteListenAcknowledged  = "notifications/subscriptions/acknowledged"
	ResultComplete          = "complete"       // resultType of a modern result that is complete
	ResultInputRequired     = "input_required" // resultType of a modern result that asks for input
	ResultTask              = "task"           // resultType of the tasks extension
)

// intern returns text as a string. It does not allocate for methods and revisions that
// occur in every call.
func intern(text []byte) string {
	switch string(text) {
	case MethodToolsCall:
		return MethodToolsCall
	case MethodToolsList:
		return MethodToolsList
	case MethodPing:
		return MethodPing
	case MethodDiscover:
		return MethodDiscover
	case NoteProgress:
		return NoteProgress
	case NoteMessage:
		return NoteMessage
	case NoteCancelled:
		return NoteCancelled
	case ResultComplete:
		return ResultComplete
	case NewestModern:
		return NewestModern
	case NewestLegacy:
		return NewestLegacy
	}
	return string(text)
}
