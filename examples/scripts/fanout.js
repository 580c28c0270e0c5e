// Many calls in parallel: the whole takes as long as the slowest.
function describe() {
  return {
    name: 'fanout',
    description: 'Inspect many stored files at once',
    params: { hashes: { type: 'array', items: 'string', required: true } },
    returns: 'what is known of each, in the order of hashes',
    annotations: { read_only: true },
  };
}

async function main({ hashes }) {
  const files = await Promise.all(hashes.map(async (hash) => {
    try {
      const { local_path: path } = await mcp.hootenanny.cas_inspect({ hash });
      return { hash, path };
    } catch (e) {
      return { hash, error: e.message };
    }
  }));
  return { files, count: files.length };
}
