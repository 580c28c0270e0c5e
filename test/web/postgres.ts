// A Postgres of its own, for tests with several nodes.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where Debian has its programs; '' where it is not installed. */
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
    const who = this.user()
    if (who.uid !== undefined) chownSync(this.folder, who.uid, who.gid!)
    const data = join(this.folder, 'data')
    const options = { cwd: this.folder, env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' }, ...who }
    execFileSync(join(programs(), 'initdb'), ['-D', data, '-U', 'luanette', '-A', 'trust', '--no-sync'], { ...options, stdio: 'ignore' })
    const child = spawn(join(programs(), 'postgres'), ['-D', data, '-k', this.folder, '-c', 'listen_addresses=', '-c', 'fsync=off'], { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
    this.process = child
    await new Promise<void>((resolve, reject) => {
      let said = ''
      child.stderr!.on('data', (text: Buffer) => {
        said += text.toString()
        if (said.includes('ready to accept connections')) resolve()
      })
      child.on('exit', () => reject(new Error(`Postgres ended: ${said}`)))
    })
  }

  async remove(): Promise<void> {
    const child = this.process
    if (child && child.exitCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGINT')
      await gone
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** It refuses to run as root. */
  private user(): { uid?: number; gid?: number } {
    if (process.getuid!() !== 0) return {}
    const name = ['postgres', 'nobody'].find((n) => { try { execFileSync('id', [n], { stdio: 'ignore' }); return true } catch { return false } })
    if (!name) throw new Error('root cannot run Postgres, and there is no other user')
    return { uid: Number(execFileSync('id', ['-u', name])), gid: Number(execFileSync('id', ['-g', name])) }
  }
}
