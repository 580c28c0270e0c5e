package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/server"
)

// chatCommand is `luanette chat`.
type chatCommand struct {
	clientFlags
	User string `placeholder:"NAME" default:"terminal" help:"Name of the user, for a server that stores conversations and a key that is nobody's."`
	Once string `placeholder:"MESSAGE" help:"Send this message, print the answer and exit."`
}

const chatHelp = `/reset starts a new conversation, /lua reset only forgets the Lua variables,
/help shows this text, /quit exits.
All other lines are sent to the agent. Ctrl-C ends an answer.`

// Help is shown by `luanette chat --help`.
func (chatCommand) Help() string {
	return `Chat with an agent that can use every tool of every upstream. Answers go to
standard output as they arrive; running tools are shown on standard error.

The model is Anthropic's, with the key in ANTHROPIC_API_KEY, unless the section
[chat] of luanette.toml names another one. With --server the agent of a running
server answers and stores the conversation; LUANETTE_KEY holds the key.

` + chatHelp
}

// Run chats until the input ends.
func (c *chatCommand) Run(ctx context.Context, proc *process) error {
	ctx = context.WithoutCancel(ctx) // an interrupt ends an answer, not the command
	conversation, err := c.begin(ctx, proc)
	if err != nil {
		return err
	}
	t := &chatLoop{flags: c, proc: proc, chat: conversation}
	if c.Once != "" {
		err = t.say(ctx, c.Once)
	} else {
		err = t.run(ctx)
	}
	return errors.Join(err, conversation.Close(ctx))
}

func (c *chatCommand) begin(ctx context.Context, proc *process) (client.Chat, error) {
	if err := c.asService(ctx, proc, &c.Server); err != nil {
		return nil, err
	}
	if c.Server != "" {
		return client.ConnectChat(ctx, c.Server, c.User, c.access(ctx, proc, &c.settingFlags, c.Server))
	}
	loaded, err := c.load(proc, nil)
	if err != nil {
		return nil, err
	}
	options := server.Options{Version: version, Stderr: io.Discard, Env: proc.Env, OnDemand: true}
	if c.LogLevel != nil {
		options.Stderr = proc.Stderr
	}
	srv, err := server.Build(ctx, loaded, options)
	if err != nil {
		return nil, err
	}
	defer reportWaiting(proc, client.Local(srv, c.Wait).Waiting)()
	conversation, err := client.LocalChat(ctx, srv, c.User, c.Wait)
	if err != nil {
		return nil, errors.Join(err, srv.Close(ctx))
	}
	return conversation, nil
}

// chatLoop runs one conversation.
type chatLoop struct {
	flags *chatCommand
	proc  *process
	chat  client.Chat
}

// run reads messages until the input ends. It prints the error of a failed answer
// and continues.
func (t *chatLoop) run(ctx context.Context) error {
	lines := openLines(t.proc, func(string) []string { return nil })
	defer lines.Close()
	if terminalWidth(t.proc.Stdout) > 0 {
		fmt.Fprintf(t.proc.Stderr, "Luanette %s. /help lists commands, Ctrl-D exits.\n", version)
	}
	for {
		line, err := lines.Prompt("you> ")
		switch {
		case errors.Is(err, errInterrupted):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines.Remember(line)
		if err := t.handle(ctx, line); errors.Is(err, errQuit) {
			return nil
		} else if err != nil {
			printError(t.proc, err)
		}
	}
}

// handle runs a command, or sends a message.
func (t *chatLoop) handle(ctx context.Context, line string) error {
	switch word, _, _ := strings.Cut(line, " "); {
	case word == "/reset":
		if err := t.chat.Reset(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintln(t.proc.Stderr, "started a new conversation")
		return err
	case word == "/help":
		_, err := fmt.Fprintln(t.proc.Stderr, chatHelp)
		return err
	case word == "/quit", word == "/exit":
		return errQuit
	case strings.HasPrefix(word, "/") && !isLuaReset(line):
		return fault.New(fault.InvalidParams, "no command %s", word).WithHint("/help lists them")
	default:
		return t.say(ctx, line)
	}
}

// isLuaReset reports whether a line is the command that the agent handles itself.
func isLuaReset(line string) bool { return strings.Join(strings.Fields(line), " ") == "/lua reset" }

// say sends a message and shows the answer as it arrives.
func (t *chatLoop) say(ctx context.Context, message string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	shown := &answerPrinter{proc: t.proc, quiet: t.flags.JSON}
	reply, err := t.chat.Say(ctx, message, shown.event)
	shown.end()
	if err != nil {
		return err
	}
	if !t.flags.JSON {
		return nil
	}
	return printValue(t.proc, map[string]any{
		"responses": reply.Responses, "model": reply.Model, "usage": reply.Usage, "notices": reply.Notices, "message_id": reply.RequestID,
	})
}

// answerPrinter shows one answer: its text on standard output, its tool calls on
// standard error.
type answerPrinter struct {
	proc   *process
	quiet  bool // text and tools are not shown
	block  int
	inLine bool // the last line of text has no newline yet
	status bool // the terminal's last line shows a status
}

func (s *answerPrinter) event(e agent.Event) {
	if s.quiet {
		return
	}
	switch e := e.(type) {
	case agent.Status:
		s.showStatus(e.Message)
	case agent.Text:
		s.clear()
		if e.Block > s.block {
			s.endLine()
			s.block = e.Block
		}
		fmt.Fprint(s.proc.Stdout, plainText(e.Text))
		s.inLine = !strings.HasSuffix(e.Text, "\n")
	case agent.ToolUse:
		s.remark("→ %s %s", e.Tool, short(string(e.Input), 100))
	case agent.ToolResult:
		mark := "✓"
		if e.Failed {
			mark = "✗"
		}
		s.remark("%s %s (%v) %s", mark, e.Tool, e.Took.Round(time.Millisecond), short(e.Text, 80))
	case agent.Notice:
		s.remark("! %s", e.Message)
	}
}

// showStatus shows the current activity on a terminal.
func (s *answerPrinter) showStatus(text string) {
	if terminalWidth(s.proc.Stderr) == 0 || s.inLine {
		return
	}
	s.clear()
	fmt.Fprintf(s.proc.Stderr, "\x1b[2m%s\x1b[0m", plainText(text))
	s.status = true
}

func (s *answerPrinter) clear() {
	if s.status {
		fmt.Fprint(s.proc.Stderr, "\r\x1b[K")
		s.status = false
	}
}

// remark prints a line to standard error.
func (s *answerPrinter) remark(format string, args ...any) {
	s.clear()
	s.endLine()
	text := plainText(fmt.Sprintf(format, args...))
	if terminalWidth(s.proc.Stderr) > 0 {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	fmt.Fprintln(s.proc.Stderr, text)
}

func (s *answerPrinter) endLine() {
	if s.inLine {
		fmt.Fprintln(s.proc.Stdout)
		s.inLine = false
	}
}

func (s *answerPrinter) end() {
	s.clear()
	s.endLine()
}
