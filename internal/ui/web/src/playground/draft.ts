// What somebody writes in the playground, kept in this browser tab until it is closed.
import type { Language } from '../parts/editor'

export interface Draft {
  language: Language
  code: string
  parent?: string // the stored script that it began with, or was last saved as
  saved?: string // the text of that script
}

const first: Record<Language, string> = {
  lua: '-- Press Ctrl+Enter to run. Tools are mcp.<namespace>.<tool>{...}.\nprint("hello")\nreturn { namespaces = mcp.namespaces() }\n',
  javascript: '// Press Ctrl+Enter to run. Tools are await mcp.<namespace>.<tool>({...}).\nconsole.log("hello")\nreturn { now: new Date() }\n',
  typescript: '// Press Ctrl+Enter to run. Types are removed before the run.\nconst words: string[] = ["hello", "there"]\nreturn { words, count: words.length }\n',
}

export function newDraft(language: Language): Draft {
  return { language, code: first[language] }
}

/** The draft in another language; a text that nobody changed is replaced by its example. */
export function inLanguage(draft: Draft, language: Language): Draft {
  return draft.code === first[draft.language] ? newDraft(language) : { ...draft, language }
}

/** The language of a stored script. */
export function languageOf(tags: string[]): Language {
  return (['typescript', 'javascript'] as const).find((l) => tags.includes(`type:${l}`)) ?? 'lua'
}

const key = (script: string) => `luanette.draft/${script}`

/** The draft of a stored script, or of none. */
export function loadDraft(script: string): Draft | undefined {
  const text = sessionStorage.getItem(key(script))
  return text ? (JSON.parse(text) as Draft) : undefined
}

export function keepDraft(script: string, draft: Draft): void {
  sessionStorage.setItem(key(script), JSON.stringify(draft))
}

export function dropDraft(script: string): void {
  sessionStorage.removeItem(key(script))
}
