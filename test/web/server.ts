// Runs the real program as a server for the tests.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** After this time a server that starts or stops is told to print its goroutines and end. */
const patience = 90_000
const binary = process.env.LUANETTE ?? '../../bin/luanette'

/** An address for a server that restarts: outside the range from which the system assigns ports, so that no other program gets it. */
export function ownAddress(): string {
  return `http://127.0.0.1:${11_000 + (process.pid % 7000)}`
}

export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), 'luanette-hud-'))
  private process?: ChildProcess
  private output = '' // since its start
  address = ''
  key = '' // if the server requires one; otherwise the owner's secret
  private keyless = false

  /** The configuration may be a function, for one that names the folder. */
  constructor(private readonly config: string | (() => string) = '', private readonly env: Record<string, string> = {}) {}

  /** Starts the server, at its previous address if it had one. */
  async start(): Promise<string> {
    const file = join(this.folder, 'luanette.toml')
    writeFileSync(file, typeof this.config === 'string' ? this.config : this.config())
    const listen = this.address ? new URL(this.address).host : '127.0.0.1:0'
    const child = spawn(binary, ['serve', '--listen', listen, '--data', join(this.folder, 'data'), '--config', file], {
      env: { PATH: process.env.PATH ?? '', HOME: this.folder, ...this.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.process = child
    this.output = ''
    const hangs = setTimeout(() => child.kill('SIGQUIT'), patience)
    this.address = await new Promise<string>((resolve, reject) => {
      child.stderr!.on('data', (data: Buffer) => {
        this.output += data.toString()
        const found = /listening on (http:\/\/\S+)/.exec(this.output)
        if (found && /^ {2}data /m.test(this.output)) resolve(found[1]) // the lines before it say how to sign in
      })
      child.on('exit', () => reject(new Error(`the server exited: ${this.output}`)))
    }).finally(() => clearTimeout(hangs))
    this.keyless = this.output.includes('/signin/owner?')
    if (this.keyless) this.key = readFileSync(join(this.folder, 'data', 'owner_secret'), 'utf8').trim()
    return this.address
  }

  /** Sends a request with the key, or as the owner. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.address + path, { ...init, headers: { ...init.headers, Authorization: `Bearer ${this.key}` } })
  }

  /** A link that signs a browser in as the owner; empty if the server requires a key. */
  async signInLink(): Promise<string> {
    if (!this.keyless) return ''
    const answer = await this.fetch('/api/v1/owner/link', { method: 'POST' })
    return this.address + ((await answer.json()) as { path: string }).path
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    let dumped = false
    const hangs = setTimeout(() => { dumped = child.kill('SIGQUIT') }, patience)
    await exited
    clearTimeout(hangs)
    if (dumped) throw new Error(`the server did not end after ${signal}: ${this.output}`)
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Runs a command of the program on this server's data and returns its output. */
  async run(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(binary, [...args, '--data', join(this.folder, 'data')], { env: { PATH: process.env.PATH ?? '', HOME: this.folder } })
    return stdout
  }

  /** Connects as a client of that name does. */
  async initialize(name: string, version: string): Promise<void> {
    const answer = await fetch(`${this.address}/mcp`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...(this.key && { Authorization: `Bearer ${this.key}` }) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name, version } } }),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }

  /** Calls a tool of the server. */
  async call(name: string, args: unknown): Promise<Record<string, unknown>> {
    const answer = await fetch(`${this.address}/mcp`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
        ...(this.key && { Authorization: `Bearer ${this.key}` }),
        'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name,
      },
      body: JSON.stringify({
        jsonrpc: '2.0', id: 1, method: 'tools/call',
        params: {
          name, arguments: args,
          _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} },
        },
      }),
    })
    const text = await answer.text()
    const line = text.startsWith('{') ? text : text.split('\n').filter((l) => l.startsWith('data:')).map((l) => l.slice(5)).pop()!
    const message = JSON.parse(line) as { result?: { structuredContent: Record<string, unknown>; isError?: boolean }; error?: unknown }
    if (!message.result || message.result.isError) throw new Error(line)
    return message.result.structuredContent
  }
}
