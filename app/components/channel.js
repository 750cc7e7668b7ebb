/* A channel beside the page, see app/live.py: the latest question waits until it is open. */
function open({ address, name }, answered, ended) {
  const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}${address}?name=${name}`);
  socket.binaryType = "arraybuffer";
  let question = null;
  socket.onopen = () => question && socket.send(question);
  socket.onmessage = ({ data }) => answered(data);
  socket.onclose = ended;
  return {
    send: (asked) => (socket.readyState === WebSocket.OPEN ? socket.send(asked) : (question = asked)),
    close: () => socket.close(),
  };
}

