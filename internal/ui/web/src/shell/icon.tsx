// The icons of the page, drawn for it on a grid of 16.
const paths: Record<string, string> = {
  overview: 'M2 9h4v5H2zM10 2h4v12h-4zM6 5h4v9H6z',
  activity: 'M1.5 8.5h3l2-5.5 3 10 2-4.5h3',
  servers: 'M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01',
  tools: 'M9.5 6.5 3 13M13.6 4.2a3.4 3.4 0 0 1-4.7 4.3 3.4 3.4 0 0 1 4.3-4.7L11 6l1 1z',
  approvals: 'M8 1.8 13 4v4c0 3-2.2 5.2-5 6.2C5.2 13.2 3 11 3 8V4zM5.8 8l1.6 1.6 3-3.1',
  playground: 'M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5M9 3 7 13',
  jobs: 'M3 4h6M3 8h10M3 12h4M11 10.5v3.5l2.8-1.75z',
  library: 'M8 1.8 14 5v6l-6 3.2L2 11V5zM2 5l6 3.2L14 5M8 8.2v6',
  timeline: 'M2 4h5M5 8h7M3 12h6M13 2.5v11',
  chat: 'M2 3h12v8.5H7L4 14v-2.5H2z',
  traces: 'M2 3h7v2.5H2zM5 6.8h7v2.5H5zM8 10.5h6V13H8z',
  audit: 'M3 2h10v12H3zM5.5 5h5M5.5 8h5M5.5 11h3',
  organisation: 'M2.5 14V3h7v11M9.5 7h4v7M1.5 14h13M5 6h2M5 9h2M5 12h2',
  people: 'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M1.5 14c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M11 3a2.3 2.3 0 0 1 0 4.4M12.5 10.3c1.3.6 2 1.9 2 3.7',
  you: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6M2.5 14c0-2.8 2.4-4.5 5.5-4.5s5.5 1.7 5.5 4.5',
  settings: 'M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6M10 2.8a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4M6 9.8a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4',
  help: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M6.2 6.3a1.9 1.9 0 1 1 2.6 1.9c-.6.3-.8.6-.8 1.2M8 11.4h.01',
  menu: 'M2 4h12M2 8h12M2 12h12',
  usage: 'M2 13.5h12M3.5 11V8M6.5 11V5M9.5 11V7M12.5 11V2.5',
  add: 'M8 3v10M3 8h10',
  attach: 'M12.5 7 7.6 12a3 3 0 0 1-4.3-4.2l5.3-5.4a2 2 0 0 1 2.9 2.8L6.3 10.5a1 1 0 0 1-1.4-1.4L9.3 4.7',
  stop: 'M4 4h8v8H4z',
  play: 'M4.5 2.5 13 8l-8.5 5.5z',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10M10.8 10.8 14.5 14.5',
}

/** A decorative icon; the text beside it says the same. */
export function Icon({ name }: { name: string }) {
  return <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={paths[name]} /></svg>
}

/** The mark of the program, as in icon.svg, in the colours of the theme. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="16" r="14" fill="var(--accent)" /><circle cx="21" cy="11" r="6" fill="var(--panel)" /><circle cx="27" cy="5" r="3" fill="#f2b134" />
    </svg>
  )
}
