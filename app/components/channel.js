/* A WebSocket to the server, see app/live.py. Until it is open, it keeps the latest message and sends it then. */
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

