// The server's plain HTTP endpoints, for what MCP has no words for.
import { Unauthorized } from './mcp'

/** Gets JSON; an answer that is no success is thrown with what the server says. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(path, { signal, credentials: 'same-origin' })
  if (!answer.ok) throw await refusal(answer)
  return (await answer.json()) as T
}

/** Why the server did not answer, in its own words where it has some. */
export async function refusal(answer: Response): Promise<Error> {
  if (answer.status === 401) return new Unauthorized()
  const text = await answer.text()
  try {
    const body = JSON.parse(text) as { message?: string; hint?: string; error?: string | { message?: string; hint?: string } }
    const said = typeof body.error === 'object' ? body.error : body
    if (said.message) return new Error(said.hint ? `${said.message} (${said.hint})` : said.message)
  } catch {
    // not JSON
  }
  return new Error(`the server answered ${answer.status}`)
}
