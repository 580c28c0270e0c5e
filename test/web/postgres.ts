// Runs a Postgres for tests with several nodes.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The folder of Debian's Postgres programs; '' if it is not installed. */
export function programs(): string {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return ''
  return readdirSync(root).sort().map((version) => join(root, version, 'bin')).filter((bin) => existsSync(join(bin, 'initdb'))).pop() ?? ''
}

export class Postgres {
  private readonly folder = mkdtempSync(join(tmpdir(), 'luanette-pg-'))
  private process?: ChildProcess

  /** The address of its database. */
  readonly url = `postgres:///postgres?user=luanette&host=${this.folder}`

  async start(): Promise<void> {
    const user = this.user()
    if (user.uid !== undefined) chownSync(this.folder, user.uid, user.gid!)
    const data = join(this.folder, 'data')
    const options = { cwd: this.folder, env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' }, ...user }
    execFileSync(join(programs(), 'initdb'), ['-D', data, '-U', 'luanette', '-A', 'trust', '--no-sync'], { ...options, stdio: 'ignore' })
    const child = spawn(join(programs(), 'postgres'), ['-D', data, '-k', this.folder, '-c', 'listen_addresses=', '-c', 'fsync=off'], { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
    this.process = child
    await new Promise<void>((resolve, reject) => {
      let output = ''
      child.stderr!.on('data', (text: Buffer) => {
        output += text.toString()
        if (output.includes('ready to accept connections')) resolve()
      })
      child.on('exit', () => reject(new Error(`Postgres exited: ${output}`)))
    })
  }

  async remove(): Promise<void> {
    const child = this.process
    if (child && child.exitCode === null) {
      const exited = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGINT')
      await exited
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Postgres refuses to run as root. */
  private user(): { uid?: number; gid?: number } {
    if (process.getuid!() !== 0) return {}
    const name = ['postgres', 'nobody'].find((n) => { try { execFileSync('id', [n], { stdio: 'ignore' }); return true } catch { return false } })
    if (!name) throw new Error('root cannot run Postgres, and there is no other user')
    return { uid: Number(execFileSync('id', ['-u', name])), gid: Number(execFileSync('id', ['-g', name])) }
  }
}
