// Markdown to safe HTML. What a model writes can come from a hostile page or tool:
// nothing runs, nothing is loaded, and links are links to the web only.
import DOMPurify from 'dompurify'
import { Marked } from 'marked'

const inlineImage = /^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i
const linked = /^(https?:|mailto:|#)/i

const escape = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    /** HTML is shown as text, except tags without attributes that only format. */
    html({ text }) {
      return text.split(/(<\/?(?:br|sub|sup|kbd|u|b|i|s|details|summary)\s*\/?>)/i).map((part, i) => (i % 2 === 1 ? part : escape(part))).join('')
    },
    /** Images of other servers would tell them that they are seen: they become links. */
    image({ href, text }) {
      if (inlineImage.test(href)) return `<img src="${escape(href)}" alt="${escape(text)}">`
      return `<a href="${escape(href)}">${escape(text || href)} (image)</a>`
    },
  },
})

const purify = DOMPurify(window as unknown as Parameters<typeof DOMPurify>[0])

purify.addHook('uponSanitizeAttribute', (node, data) => {
  if (data.attrName === 'src') data.keepAttr = node.tagName === 'IMG' && inlineImage.test(data.attrValue)
  if (data.attrName === 'href') data.keepAttr = linked.test(data.attrValue)
  if (data.attrName === 'class') data.keepAttr = node.tagName === 'CODE' && /^language-[\w+#-]+$/.test(data.attrValue)
  if (data.attrName === 'type') data.keepAttr = node.tagName === 'INPUT' && data.attrValue === 'checkbox'
})

purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A' && node.hasAttribute('href') && !node.getAttribute('href')!.startsWith('#/docs/')) {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.tagName === 'INPUT') { // of a task list
    if (node.getAttribute('type') !== 'checkbox') return node.remove()
    node.setAttribute('disabled', '')
    node.setAttribute('aria-label', node.hasAttribute('checked') ? 'done' : 'not done')
  }
})

const tags = [
  'a', 'b', 'blockquote', 'br', 'code', 'del', 'details', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'img', 'input', 'kbd', 'li', 'ol', 'p', 'pre',
  's', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'u', 'ul',
]

/** Renders Markdown. */
export function render(text: string): DocumentFragment {
  return purify.sanitize(marked.parse(text, { async: false }), {
    ALLOWED_TAGS: tags,
    ALLOWED_ATTR: ['href', 'src', 'alt', 'title', 'class', 'start', 'align', 'type', 'checked'],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  })
}
