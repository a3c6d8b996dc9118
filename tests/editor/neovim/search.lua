-- A file is opened, and when its search is under way the file $MUGRAPH_SEARCHING is written; ends once $MUGRAPH_QUIT is.
local function exists(name) return vim.fn.filereadable(os.getenv(name)) == 1 end

server.handlers = {
  ["mugraph/status"] = function(_, status)
    if (status.regions or {}).searching and not exists("MUGRAPH_SEARCHING") then
      vim.fn.writefile({ status.state }, os.getenv("MUGRAPH_SEARCHING"))
    end
  end,
}

-- After the start-up, so that events reach the autocommands as they do for a person.
vim.defer_fn(function()
  vim.cmd("edit " .. os.getenv("MUGRAPH_FILE"))
  vim.wait(120000, function() return exists("MUGRAPH_QUIT") end, 20)
  vim.cmd("qall!")
end, 50)
