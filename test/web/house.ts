// A real luanette with a real luanette behind it, for the length of a test file.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const binary = process.env.LUANETTE ?? '../../bin/luanette'

/**
 * An address for a server that goes and comes back: nobody is given that port unasked
 * while it is away.
 */
export function ownAddress(): string {
  return `http://127.0.0.1:${11_000 + (process.pid % 7000)}`
}

export class House {
  readonly folder = mkdtempSync(join(tmpdir(), 'luanette-hud-'))
  private process?: ChildProcess
  address = ''
  key = '' // for a server that wants one

  constructor(private readonly config = '', private readonly env: Record<string, string> = {}) {}

  /** Starts the server, at the address it had before if it had one. */
  async start(): Promise<string> {
    const file = join(this.folder, 'luanette.toml')
    writeFileSync(file, this.config)
    const listen = this.address ? new URL(this.address).host : '127.0.0.1:0'
    const child = spawn(binary, ['serve', '--listen', listen, '--data', join(this.folder, 'data'), '--config', file], {
      env: { PATH: process.env.PATH ?? '', HOME: this.folder, ...this.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.process = child
    this.address = await new Promise<string>((resolve, reject) => {
      let said = ''
      child.stderr!.on('data', (data: Buffer) => {
        said += data.toString()
        const found = /listening on (http:\/\/\S+)/.exec(said)
        if (found) resolve(found[1])
      })
      child.on('exit', () => reject(new Error(`the server ended: ${said}`)))
    })
    return this.address
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await gone
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Runs a command of the program on this server's data, and returns what it says. */
  async run(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(binary, [...args, '--data', join(this.folder, 'data')], { env: { PATH: process.env.PATH ?? '', HOME: this.folder } })
    return stdout
  }

  /** Calls one of the server's tools, as any client would. */
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
